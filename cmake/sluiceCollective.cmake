# sluice_find_nccl(): looks for NCCL, which is never required: NCCL_ROOT (a variable or from the environment), the system, the CUDA
# toolkit's folders, or Python's site-packages (nvidia-nccl-cu13, nvidia-nccl-cu12, what PyTorch installs). Sets
# SLUICE_HAS_NCCL and, when true, makes the target sluice::nccl, which defines SLUICE_HAS_NCCL=1.

option(SLUICE_NCCL "Use NCCL for collectives between GPUs where it is found" ON)

function(sluice_find_nccl)
    set(SLUICE_HAS_NCCL OFF PARENT_SCOPE)
    if(NOT SLUICE_NCCL OR NOT SLUICE_HAS_CUDA)
        return()
    endif()
    set(folders ${NCCL_ROOT} $ENV{NCCL_ROOT} "${CUDAToolkit_LIBRARY_ROOT}" "${CUDAToolkit_TARGET_DIR}")
    if(NOT SLUICE_NCCL_INCLUDE_DIR)
        find_program(SLUICE_PYTHON NAMES python3 python)
        mark_as_advanced(SLUICE_PYTHON)
        if(SLUICE_PYTHON)
            execute_process(
                COMMAND "${SLUICE_PYTHON}" -c "import sys; print(';'.join(p for p in sys.path if 'packages' in p))"
                OUTPUT_VARIABLE packages OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
            list(APPEND folders ${packages})
        endif()
    endif()
    set(hints "")
    foreach(folder IN LISTS folders)
        list(APPEND hints "${folder}/nvidia/nccl" "${folder}")
    endforeach()
    find_path(SLUICE_NCCL_INCLUDE_DIR nccl.h HINTS ${hints} PATH_SUFFIXES include)
    find_library(SLUICE_NCCL_LIBRARY NAMES nccl libnccl.so.2 NAMES_PER_DIR HINTS ${hints} PATH_SUFFIXES lib lib64)
    mark_as_advanced(SLUICE_NCCL_INCLUDE_DIR SLUICE_NCCL_LIBRARY)
    if(NOT SLUICE_NCCL_INCLUDE_DIR OR NOT SLUICE_NCCL_LIBRARY)
        message(STATUS "sluice: NCCL was not found, collectives run on the host only "
                       "(libnccl-dev, pip install nvidia-nccl-cu13, or -DNCCL_ROOT=DIR)")
        return()
    endif()
    if(NOT TARGET sluice::nccl)
        add_library(sluice::nccl INTERFACE IMPORTED GLOBAL)
        target_include_directories(sluice::nccl INTERFACE "${SLUICE_NCCL_INCLUDE_DIR}")
        target_link_libraries(sluice::nccl INTERFACE "${SLUICE_NCCL_LIBRARY}")
        target_compile_definitions(sluice::nccl INTERFACE SLUICE_HAS_NCCL=1)
    endif()
    message(STATUS "sluice: NCCL is ${SLUICE_NCCL_LIBRARY}")
    set(SLUICE_HAS_NCCL ON PARENT_SCOPE)
endfunction()

# sluice_find_mpi(): looks for MPI, which is never required. Sets SLUICE_HAS_MPI and, when true, makes the target sluice::mpi,
# which defines SLUICE_HAS_MPI=1.

option(SLUICE_MPI "Use MPI for ranks in several processes where it is found" ON)

function(sluice_find_mpi)
    set(SLUICE_HAS_MPI OFF PARENT_SCOPE)
    if(NOT SLUICE_MPI)
        return()
    endif()
    set(MPI_CXX_SKIP_MPICXX ON) # C++ bindings that MPI no longer has
    find_package(MPI QUIET COMPONENTS CXX)
    if(NOT TARGET MPI::MPI_CXX)
        message(STATUS "sluice: MPI was not found, ranks are of one process (libopenmpi-dev)")
        return()
    endif()
    if(NOT TARGET sluice::mpi)
        add_library(sluice::mpi INTERFACE IMPORTED GLOBAL)
        target_link_libraries(sluice::mpi INTERFACE MPI::MPI_CXX)
        target_compile_definitions(sluice::mpi INTERFACE SLUICE_HAS_MPI=1)
    endif()
    message(STATUS "sluice: MPI is ${MPI_CXX_LIBRARIES}")
    set(SLUICE_HAS_MPI ON PARENT_SCOPE)
    set(SLUICE_MPIEXEC "${MPIEXEC_EXECUTABLE}" PARENT_SCOPE)
endfunction()
