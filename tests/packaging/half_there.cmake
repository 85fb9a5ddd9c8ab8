# Optional parts that are half there: a header that does not compile beside a library, a compiler that does not work. Sluice's own
# programs have to be configured without them, and each has to be named in one line with what is wrong. Run by CTest.

file(REMOVE_RECURSE "${WORK_DIR}")
set(broken "${WORK_DIR}/include")
foreach(header cblas.h nvtx3/nvToolsExt.h nccl.h cupti.h cudnn_graph.h kissfft.hh turbojpeg.h)
    file(CONFIGURE OUTPUT "${broken}/${header}" CONTENT "#include <no_such_header.h>\n")
endforeach()
file(CONFIGURE OUTPUT "${WORK_DIR}/mpicxx" CONTENT "#!/bin/sh\nexit 1\n")
file(CHMOD "${WORK_DIR}/mpicxx" PERMISSIONS OWNER_READ OWNER_EXECUTE)
file(CONFIGURE OUTPUT "${WORK_DIR}/libnothing.so" CONTENT "not a library")

set(arguments "-DMPI_CXX_COMPILER=${WORK_DIR}/mpicxx" "-DSLUICE_OPENBLAS_INCLUDE_DIR=${broken}"
              "-DSLUICE_OPENBLAS_LIBRARY=${WORK_DIR}/libnothing.so" "-DSLUICE_NVTX_INCLUDE_DIR=${broken}"
              "-DSLUICE_KISSFFT_INCLUDE_DIR=${broken}" "-DSLUICE_TURBOJPEG_INCLUDE_DIR=${broken}"
              "-DSLUICE_TURBOJPEG_LIBRARY=${WORK_DIR}/libnothing.so")
set(without "no_such_header.h: No such file or directory|'no_such_header.h' file not found")
set(expected "sluice: MPI's compiler is ${WORK_DIR}/mpicxx, but no program that includes mpi.h compiles"
             "sluice: OpenBLAS is ${WORK_DIR}/libnothing.so, but cannot be used \\([^\n]*(${without})\\)"
             "sluice: NVTX is ${broken}/nvtx3/nvToolsExt.h, but cannot be used \\([^\n]*(${without})\\)"
             "sluice: KISS FFT is ${broken}/kissfft.hh, but cannot be used \\([^\n]*(${without})\\)"
             "sluice: libjpeg-turbo is ${WORK_DIR}/libnothing.so, but cannot be used \\([^\n]*(${without})\\)")
if(EXPECT_CUDA)
    list(APPEND arguments "-DCMAKE_CUDA_COMPILER=${CUDA_COMPILER}" "-DSLUICE_NCCL_INCLUDE_DIR=${broken}"
         "-DSLUICE_NCCL_LIBRARY=${WORK_DIR}/libnothing.so" "-DSLUICE_CUPTI_INCLUDE_DIR=${broken}"
         "-DSLUICE_CUDNN_INCLUDE_DIR=${broken}" "-DSLUICE_CUDNN_LIBRARY=${WORK_DIR}/libnothing.so")
    list(APPEND expected "sluice: NCCL is ${WORK_DIR}/libnothing.so, but cannot be used \\([^\n]*(${without})\\)"
         "sluice: CUPTI is ${broken}/cupti.h, but cannot be used \\([^\n]*(${without})\\)"
         "sluice: cuDNN is ${WORK_DIR}/libnothing.so, but cannot be used \\([^\n]*(${without})\\)")
else()
    list(APPEND arguments "-DSLUICE_CUDA=OFF")
endif()

execute_process(
    COMMAND
        "${CMAKE_COMMAND}" -S "${SLUICE_SOURCE_DIR}" -B "${WORK_DIR}/build" -G "${GENERATOR}"
        "-DCMAKE_MAKE_PROGRAM=${MAKE_PROGRAM}" "-DCMAKE_CXX_COMPILER=${CXX_COMPILER}" -DSLUICE_BUILD_TESTS=OFF
        -DSLUICE_BUILD_BENCHMARKS=OFF -DSLUICE_BUILD_EXAMPLES=ON ${arguments}
    RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
message("${output}")
if(NOT result EQUAL 0)
    message(FATAL_ERROR "configuring failed")
endif()
foreach(line IN LISTS expected)
    if(NOT output MATCHES "${line}")
        message(FATAL_ERROR "expected a line with '${line}'")
    endif()
endforeach()
