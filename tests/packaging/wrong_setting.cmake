# A value of SLUICE_CUDA that is none, for sluice's own programs and for a project that has sluice as a subdirectory: configuring has
# to end with one sentence. Run by CTest.

file(REMOVE_RECURSE "${WORK_DIR}")
file(CONFIGURE OUTPUT "${WORK_DIR}/user/CMakeLists.txt" CONTENT [[
cmake_minimum_required(VERSION 3.25)
project(user LANGUAGES CXX)
add_subdirectory("@SLUICE_SOURCE_DIR@" sluice)
]] @ONLY)
foreach(source "${SLUICE_SOURCE_DIR}" "${WORK_DIR}/user")
    foreach(value 0 off "")
        file(REMOVE_RECURSE "${WORK_DIR}/build")
        execute_process(
            COMMAND "${CMAKE_COMMAND}" -S "${source}" -B "${WORK_DIR}/build" -G "${GENERATOR}" "-DCMAKE_MAKE_PROGRAM=${MAKE_PROGRAM}"
                    "-DCMAKE_CXX_COMPILER=${CXX_COMPILER}" "-DSLUICE_CUDA=${value}"
            RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
        string(REGEX REPLACE "[ \n]+" " " output "${output}") # CMake breaks the line
        if(result EQUAL 0 OR NOT output MATCHES "sluice: SLUICE_CUDA is '${value}', expected AUTO, ON or OFF\\.")
            message(FATAL_ERROR "expected a sentence about SLUICE_CUDA=${value}, found status ${result}: ${output}")
        endif()
    endforeach()
endforeach()
