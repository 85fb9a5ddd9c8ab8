# Applies SLUICE_SANITIZE to the folders added after this file.

if(SLUICE_SANITIZE)
    set(sluice_sanitize_flags -fsanitize=${SLUICE_SANITIZE} -fno-omit-frame-pointer)
    if(SLUICE_SANITIZE MATCHES "undefined")
        list(APPEND sluice_sanitize_flags -fno-sanitize-recover=undefined)
    endif()
    add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:${sluice_sanitize_flags}>")
    add_link_options(-fsanitize=${SLUICE_SANITIZE})
endif()
