# Configures, builds and runs consumer/ against an installed or a fetched sluice. Run by CTest.

function(run)
    execute_process(COMMAND ${ARGV} RESULT_VARIABLE result)
    if(NOT result EQUAL 0)
        list(JOIN ARGV " " command)
        message(FATAL_ERROR "failed: ${command}")
    endif()
endfunction()

file(REMOVE_RECURSE "${WORK_DIR}")
set(arguments "-DHOW=${HOW}" "-DEXPECT_CUDA=${EXPECT_CUDA}" "-DSLUICE_VERSION=${SLUICE_VERSION}"
              "-DCMAKE_CXX_COMPILER=${CXX_COMPILER}" "-DCMAKE_MAKE_PROGRAM=${MAKE_PROGRAM}")
if(EXPECT_CUDA)
    list(APPEND arguments "-DSLUICE_CUDA=AUTO" "-DCMAKE_CUDA_COMPILER=${CUDA_COMPILER}"
         "-DCMAKE_CUDA_ARCHITECTURES=${CUDA_ARCHITECTURE}")
else()
    list(APPEND arguments "-DSLUICE_CUDA=OFF")
endif()
if(HOW STREQUAL "installed")
    run("${CMAKE_COMMAND}" --install "${SLUICE_BINARY_DIR}" --prefix "${WORK_DIR}/prefix")
    # Moved, so that no path of the installation can be left in it.
    file(RENAME "${WORK_DIR}/prefix" "${WORK_DIR}/moved")
    list(APPEND arguments "-DCMAKE_PREFIX_PATH=${WORK_DIR}/moved")
else()
    list(APPEND arguments "-DFETCHCONTENT_SOURCE_DIR_SLUICE=${SLUICE_SOURCE_DIR}")
endif()

run("${CMAKE_COMMAND}" -S "${CMAKE_CURRENT_LIST_DIR}/consumer" -B "${WORK_DIR}/build" -G "${GENERATOR}" ${arguments})
run("${CMAKE_COMMAND}" --build "${WORK_DIR}/build")
run("${WORK_DIR}/build/consumer")
