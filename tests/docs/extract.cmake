# sluice_document(NAME FILE [PSEUDO text reason]...)
# sluice_documents_end(AT_ONCE)
#
# Compile every C++ block of a document, and run its complete programs on the CPU, and on a GPU where there is one.
#
# A document's fragments are one file, in the namespace documents_NAME, which begins with prelude_NAME.hpp: that declares
# what they take for granted. AT_ONCE such files are compiled as one. A block fenced as
# `cpp` is compiled for the CPU by the C++ compiler, one fenced as `cuda` by nvcc, where there is a toolkit. What a block
# is, an HTML comment on the line before its fence says, with any of these words, separated by commas:
#
# | <!-- test: ... --> | the block |
# | --- | --- |
# | nothing | a fragment: statements, in a function and a namespace of its own |
# | declarations | a fragment: declarations, in a namespace of its own |
# | continues | goes on from the fragment before, in the same namespace, and in the same function where both are statements |
# | if HEADER | is compiled where the header is found |
# | program NAME | has a main: compiled as it stands, as C++ for the CPU and, where there is a toolkit, by nvcc as well |
# | prints LINE | after `program NAME`: what the program prints on its standard output |
# | output of NAME | fenced as `text`: the same, of several lines |
# | not compiled: REASON | pseudo code |
#
# `{ ... }` stands for a body that a document leaves out: it is compiled as `{}`. #include lines of a fragment go to the
# beginning of the unit. A fence of another language must be one of those that are never compiled, listed below, so that
# no block is left out by mistake. PSEUDO marks blocks of documents that hold no such comments, by a text in the block.

set(sluice_docs_uncompiled sh cmake text console)

function(sluice_document name file)
    cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "PSEUDO")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
    file(READ "${file}" rest)
    cmake_path(RELATIVE_PATH file BASE_DIRECTORY "${PROJECT_SOURCE_DIR}" OUTPUT_VARIABLE shown)
    if(rest MATCHES "\n[ \t]+```")
        message(FATAL_ERROR "${shown}: a fence is indented, and would be left out; expected it at the beginning of a line")
    endif()
    string(PREPEND rest "\n")

    set(line 0) # where `rest` begins, at its end
    set(open_cpp FALSE)
    set(open_cuda FALSE)
    foreach(kind cpp cuda)
        foreach(part includes body declarations statements)
            set(${part}_${kind} "")
        endforeach()
        set(count_${kind} 0)
        set(programs_${kind} 0)
    endforeach()
    set(pseudo 0)

    # Closes a fragment, and those that went on from it.
    macro(sluice_close_fragment of)
        if(open_${of})
            string(APPEND body_${of} "namespace block_${open_line_${of}} {\n${declarations_${of}}")
            if(NOT "${statements_${of}}" STREQUAL "")
                string(APPEND body_${of} "[[maybe_unused]] void run() {\n${statements_${of}}}\n")
            endif()
            string(APPEND body_${of} "} // namespace\n\n")
            set(declarations_${of} "")
            set(statements_${of} "")
            set(open_${of} FALSE)
        endif()
    endmacro()

    while(TRUE)
        string(FIND "${rest}" "\n```" begin)
        if(begin EQUAL -1)
            break()
        endif()
        # The text before, the language, and the block.
        string(SUBSTRING "${rest}" 0 ${begin} before)
        math(EXPR begin "${begin} + 4")
        string(SUBSTRING "${rest}" ${begin} -1 rest)
        string(FIND "${rest}" "\n" end)
        string(SUBSTRING "${rest}" 0 ${end} language)
        string(SUBSTRING "${rest}" ${end} -1 rest) # begins with the end of the line of the fence
        string(FIND "${rest}" "\n```" end)
        if(end EQUAL -1)
            message(FATAL_ERROR "${shown}: a block of ${language} has no end")
        endif()
        string(SUBSTRING "${rest}" 0 ${end} block)
        math(EXPR end "${end} + 4")
        string(SUBSTRING "${rest}" ${end} -1 rest)

        string(REGEX MATCHALL "\n" newlines "${before}\n")
        list(LENGTH newlines lines)
        math(EXPR fence "${line} + ${lines}") # the line of the opening fence
        string(REGEX MATCHALL "\n" newlines "${block}\n")
        list(LENGTH newlines lines)
        math(EXPR line "${fence} + ${lines}") # the line of the closing fence
        math(EXPR first_line "${fence} + 1")
        set(place "${shown}:${fence}")

        set(marks "")
        if(before MATCHES "\n<!-- test: ([^\n]*) -->\n?$")
            set(marks "${CMAKE_MATCH_1}")
        endif()
        foreach(mark continues declarations)
            set(${mark} FALSE)
        endforeach()
        set(needs "")
        set(program "")
        set(output "")
        set(reason "")
        if(marks MATCHES "^not compiled: (.+)$")
            set(reason "${CMAKE_MATCH_1}")
        elseif(NOT marks STREQUAL "")
            string(REPLACE ", " ";" marks "${marks}")
            foreach(mark IN LISTS marks)
                if(mark MATCHES "^(continues|declarations)$")
                    set(${mark} TRUE)
                elseif(mark MATCHES "^if ([A-Za-z0-9_./]+)$")
                    set(needs "${CMAKE_MATCH_1}")
                elseif(mark MATCHES "^program ([a-z_0-9]+)$")
                    set(program "${CMAKE_MATCH_1}")
                elseif(mark MATCHES "^prints (.+)$" AND NOT program STREQUAL "")
                    set(output_of_${program} "${CMAKE_MATCH_1}\n")
                elseif(mark MATCHES "^output of ([a-z_0-9]+)$")
                    set(output "${CMAKE_MATCH_1}")
                else()
                    message(FATAL_ERROR "${place}: unknown mark '${mark}'; tests/docs/extract.cmake lists what there is")
                endif()
            endforeach()
        endif()
        set(pseudo_texts ${arg_PSEUDO})
        while(pseudo_texts)
            list(POP_FRONT pseudo_texts text why)
            string(FIND "${block}" "${text}" found)
            if(NOT found EQUAL -1)
                set(reason "${why}")
            endif()
        endwhile()

        if(language IN_LIST sluice_docs_uncompiled)
            if(NOT output STREQUAL "")
                string(SUBSTRING "${block}\n" 1 -1 block)
                set(output_of_${output} "${block}")
            endif()
            continue()
        elseif(NOT language MATCHES "^(cpp|cuda)$")
            string(JOIN ", " known cpp cuda ${sluice_docs_uncompiled})
            message(FATAL_ERROR "${place}: a block of '${language}', which nothing compiles; expected one of ${known}")
        endif()
        if(NOT reason STREQUAL "")
            math(EXPR pseudo "${pseudo} + 1")
            continue()
        endif()

        string(FIND "${block}" "int main(" main)
        if(NOT main EQUAL -1)
            if(program STREQUAL "")
                message(FATAL_ERROR "${place}: a complete program has no name; expected <!-- test: program NAME --> before")
            endif()
            math(EXPR programs_${language} "${programs_${language}} + 1")
            string(SUBSTRING "${block}\n" 1 -1 block)
            set(source "${CMAKE_CURRENT_BINARY_DIR}/${program}.cu")
            file(CONFIGURE OUTPUT "${source}" CONTENT "@block@" @ONLY)
            list(APPEND programs ${program})
            set(language_of_${program} ${language})
            continue()
        elseif(NOT program STREQUAL "")
            message(FATAL_ERROR "${place}: '${program}' is marked as a program, and has no main")
        endif()

        math(EXPR count_${language} "${count_${language}} + 1")
        if(continues AND NOT open_${language})
            message(FATAL_ERROR "${place}: nothing comes before that this could continue")
        elseif(NOT continues)
            sluice_close_fragment(${language})
            set(open_${language} TRUE)
            set(open_line_${language} ${fence})
        endif()
        if(block MATCHES "\n#include")
            if(block MATCHES "\n#if")
                message(FATAL_ERROR "${place}: a fragment includes under a condition; expected a complete program")
            endif()
            string(REGEX MATCHALL "\n#include [<\"][^\n>\"]+[>\"]" includes "${block}")
            foreach(include IN LISTS includes)
                if(NOT needs STREQUAL "" AND include MATCHES "<${needs}>")
                    string(APPEND includes_${language} "\n#if __has_include(<${needs}>)${include}\n#endif")
                else()
                    string(APPEND includes_${language} "${include}")
                endif()
            endforeach()
            string(REGEX REPLACE "\n#include" "\n// #include" block "${block}")
        endif()
        string(REPLACE "{ ... }" "{}" block "${block}")
        set(block "#line ${first_line} \"${file}\"${block}\n")
        if(NOT needs STREQUAL "")
            set(block "#if __has_include(<${needs}>)\n${block}#endif\n")
        endif()
        if(declarations)
            string(APPEND declarations_${language} "${block}")
        else()
            string(APPEND statements_${language} "${block}")
        endif()
    endwhile()

    set(prelude "")
    if(EXISTS "${CMAKE_CURRENT_SOURCE_DIR}/prelude_${name}.hpp")
        set(prelude "#include \"prelude_${name}.hpp\"\n")
    endif()
    foreach(kind cpp cuda)
        sluice_close_fragment(${kind})
        if(count_${kind} EQUAL 0 OR (kind STREQUAL "cuda" AND NOT SLUICE_HAS_CUDA))
            continue()
        endif()
        set(ending cpp)
        if(kind STREQUAL "cuda")
            set(ending cu)
        endif()
        set(source "${CMAKE_CURRENT_BINARY_DIR}/${name}.${ending}")
        # A fragment shows something, and does not go on to use it. Names of examples are short.
        set(pragmas "")
        foreach(warning unused-variable unused-but-set-variable unused-parameter unused-function shadow)
            string(APPEND pragmas "#pragma GCC diagnostic ignored \"-W${warning}\"\n")
        endforeach()
        if(kind STREQUAL "cuda")
            string(APPEND pragmas "#pragma nv_diag_suppress 177, 550\n")
        endif()
        set(unit "// Made from ${shown}.\n${prelude}${includes_${kind}}\n\n${pragmas}\nnamespace documents_${name} {\n\n${body_${kind}}}\n")
        file(CONFIGURE OUTPUT "${source}" CONTENT "@unit@" @ONLY)
        set_property(DIRECTORY APPEND PROPERTY sluice_docs_${kind} "${source}")
    endforeach()

    foreach(program IN LISTS programs)
        set(target docs_${program})
        set(source "${CMAKE_CURRENT_BINARY_DIR}/${program}.cu")
        if(DEFINED output_of_${program})
            set(expected "${CMAKE_CURRENT_BINARY_DIR}/${program}.txt")
            file(CONFIGURE OUTPUT "${expected}" CONTENT "@output_of_${program}@" @ONLY)
        endif()
        if(language_of_${program} STREQUAL "cpp")
            set(wrapper "${CMAKE_CURRENT_BINARY_DIR}/${program}.cpp")
            file(CONFIGURE OUTPUT "${wrapper}" CONTENT "#include \"${source}\"\n" @ONLY)
            sluice_add_document_target(${target} EXECUTABLE cpp "${wrapper}")
            sluice_add_document_test(docs.${program} ${target} "${expected}" LABELS host)
        endif()
        if(SLUICE_HAS_CUDA AND SLUICE_QUICK_KERNELS)
            # No GPU would run it. In a namespace of its own, behind its includes, it is one of many in a unit.
            file(STRINGS "${source}" includes REGEX "^#include <")
            list(JOIN includes "\n" includes)
            set(wrapper "${CMAKE_CURRENT_BINARY_DIR}/${program}_here.cu")
            file(
                CONFIGURE
                OUTPUT "${wrapper}"
                CONTENT "@includes@
#pragma GCC diagnostic ignored \"-Wreturn-type\"
#pragma nv_diag_suppress 940
namespace program_${program} {
#include \"${source}\"
}
"
                @ONLY)
            set_property(DIRECTORY APPEND PROPERTY sluice_docs_cuda "${wrapper}")
            set(skip "skipped: there is no GPU to compile it for")
            add_test(NAME docs.${program}.gpu COMMAND "${CMAKE_COMMAND}" -E echo "${skip}")
            set_tests_properties(docs.${program}.gpu PROPERTIES LABELS gpu SKIP_REGULAR_EXPRESSION "${skip}")
        elseif(SLUICE_HAS_CUDA)
            sluice_add_document_target(${target}_gpu EXECUTABLE cuda "${source}")
            sluice_add_document_test(
                docs.${program}.gpu ${target}_gpu "${expected}" LABELS gpu RESOURCE_LOCK gpu SKIP_REGULAR_EXPRESSION
                "cudaErrorNoDevice|cudaErrorInsufficientDriver")
        endif()
        unset(expected)
    endforeach()

    math(EXPR all_programs "${programs_cpp} + ${programs_cuda}")
    message(VERBOSE "${shown}: ${count_cpp} fragments by the C++ compiler, ${count_cuda} by nvcc, "
            "${all_programs} programs, ${pseudo} not compiled")
endfunction()

# Compiles the fragments of all documents so far: those of up to `at_once` as one, most of which goes into headers and
# inline functions that all of them use.
function(sluice_documents_end at_once)
    foreach(kind cpp cuda)
        get_property(sources DIRECTORY PROPERTY sluice_docs_${kind})
        set(ending cpp)
        if(kind STREQUAL "cuda")
            set(ending cu)
        endif()
        set(units "")
        set(number 0)
        while(sources)
            set(text "")
            foreach(place RANGE 1 ${at_once})
                list(POP_FRONT sources source)
                if(source)
                    string(APPEND text "#include \"${source}\"\n")
                endif()
            endforeach()
            set(unit "${CMAKE_CURRENT_BINARY_DIR}/fragments_${number}.${ending}")
            file(CONFIGURE OUTPUT "${unit}" CONTENT "@text@" @ONLY)
            list(APPEND units "${unit}")
            math(EXPR number "${number} + 1")
        endwhile()
        if(units)
            sluice_add_document_target(docs_fragments_${kind} OBJECT ${kind} "${units}")
        endif()
    endforeach()
endfunction()

# Runs a program; what follows are the test's properties.
function(sluice_add_document_test test target expected)
    add_test(NAME ${test} COMMAND "${CMAKE_COMMAND}" "-DPROGRAM=$<TARGET_FILE:${target}>" "-DEXPECTED=${expected}" -P
                                  "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/run.cmake")
    set_tests_properties(${test} PROPERTIES TIMEOUT 120 ${ARGN})
endfunction()

# A target of such sources: `cpp`, for the CPU whatever toolkit there is, or `cuda`.
function(sluice_add_document_target target what kind sources)
    if(what STREQUAL "OBJECT")
        sluice_add_checked_only(${target} ${sources})
    else()
        add_executable(${target} ${sources})
    endif()
    target_include_directories(${target} PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}")
    target_link_libraries(${target} PRIVATE sluice_warnings)
    if(kind STREQUAL "cuda")
        target_link_libraries(${target} PRIVATE sluice::sluice)
    else()
        # Not by linking sluice::sluice, which stands for CUDA where there is a toolkit.
        target_compile_features(${target} PRIVATE cxx_std_20)
        target_compile_definitions(${target} PRIVATE SLUICE_HAS_CUDA=0)
        target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/include")
        target_link_libraries(${target} PRIVATE Threads::Threads)
    endif()
endfunction()
