# NCCL and MPI, neither of which is required.

include("${CMAKE_CURRENT_LIST_DIR}/sluiceProbe.cmake")

option(SLUICE_NCCL "Use NCCL for collectives between GPUs where it is found" ON)
option(SLUICE_MPI "Use MPI for ranks in several processes where it is found" ON)

# sluice_find_nccl(): looks in NCCL_ROOT (a variable or from the environment), the system, the CUDA toolkit's folders, and Python's
# site-packages (nvidia-nccl-cu13, nvidia-nccl-cu12, what PyTorch installs). Sets SLUICE_HAS_NCCL and, when true, makes the
# target sluice::nccl, which defines SLUICE_HAS_NCCL=1.
function(sluice_find_nccl)
    set(SLUICE_HAS_NCCL OFF PARENT_SCOPE)
    if(NOT SLUICE_NCCL OR NOT SLUICE_HAS_CUDA)
        return()
    endif()
    set(folders ${NCCL_ROOT} $ENV{NCCL_ROOT} "${CUDAToolkit_LIBRARY_ROOT}" "${CUDAToolkit_TARGET_DIR}")
    if(NOT SLUICE_NCCL_INCLUDE_DIR)
        sluice_python_folders(packages)
        list(APPEND folders ${packages})
    endif()
    set(hints "")
    foreach(folder IN LISTS folders)
        list(APPEND hints "${folder}/nvidia/nccl" "${folder}")
    endforeach()
    find_path(SLUICE_NCCL_INCLUDE_DIR nccl.h HINTS ${hints} PATH_SUFFIXES include)
    find_library(SLUICE_NCCL_LIBRARY NAMES nccl libnccl.so.2 NAMES_PER_DIR HINTS ${hints} PATH_SUFFIXES lib lib64)
    mark_as_advanced(SLUICE_NCCL_INCLUDE_DIR SLUICE_NCCL_LIBRARY)

    set(without "collectives run on the host only (libnccl-dev, pip install nvidia-nccl-cu13, or -DNCCL_ROOT=DIR)")
    if(NOT SLUICE_NCCL_INCLUDE_DIR AND NOT SLUICE_NCCL_LIBRARY)
        message(STATUS "sluice: NCCL was not found, ${without}")
        return()
    elseif(NOT SLUICE_NCCL_LIBRARY)
        message(STATUS "sluice: NCCL's header is in ${SLUICE_NCCL_INCLUDE_DIR}, but its library was not found, ${without}")
        return()
    elseif(NOT SLUICE_NCCL_INCLUDE_DIR)
        message(STATUS "sluice: NCCL is ${SLUICE_NCCL_LIBRARY}, but its header was not found, ${without}")
        return()
    endif()
    sluice_probe(
        nccl "#include <nccl.h>
int main() {
    ncclUniqueId id;
    ncclComm_t comm = nullptr;
    ncclResult_t state = ncclGetUniqueId(&id);
    return state == ncclCommInitRank(&comm, 1, id, 0) && ncclCommGetAsyncError(comm, &state) == ncclCommAbort(comm);
}"
        INCLUDES "${SLUICE_NCCL_INCLUDE_DIR}" ${CUDAToolkit_INCLUDE_DIRS}
        LIBRARIES "${SLUICE_NCCL_LIBRARY}" CUDA::cudart)
    if(NOT nccl)
        message(STATUS "sluice: NCCL is ${SLUICE_NCCL_LIBRARY}, but cannot be used (${nccl_PROBLEM}), ${without}")
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

# sluice_find_mpi(): sets SLUICE_HAS_MPI and, when true, makes the target sluice::mpi, which defines SLUICE_HAS_MPI=1. Sets
# SLUICE_MPIEXEC to the command that starts ranks, to which `-np COUNT PROGRAM` is added; empty where none runs here.
function(sluice_find_mpi)
    set(SLUICE_HAS_MPI OFF PARENT_SCOPE)
    set(SLUICE_MPIEXEC "" PARENT_SCOPE)
    if(NOT SLUICE_MPI)
        return()
    endif()
    set(without "ranks are of one process (libopenmpi-dev)")
    set(program "#include <mpi.h>
int main() {
    int provided = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided);
    return MPI_Finalize();
}
")

    # FindMPI ends the whole configuration where MPI's compiler names folders that are not there, as that of openmpi-bin does
    # without libopenmpi-dev. So the compiler is tried first.
    find_program(SLUICE_MPI_COMPILER NAMES mpicxx mpic++ mpiCC HINTS "${MPI_HOME}" ENV MPI_HOME PATH_SUFFIXES bin)
    mark_as_advanced(SLUICE_MPI_COMPILER)
    set(compiler "${SLUICE_MPI_COMPILER}")
    if(MPI_CXX_COMPILER)
        set(compiler "${MPI_CXX_COMPILER}")
    endif()
    if(compiler)
        set(probe "${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/sluice_probe/mpi_compiler.cpp")
        file(WRITE "${probe}" "${program}")
        execute_process(
            COMMAND "${CMAKE_COMMAND}" -E env "OMPI_CXX=${CMAKE_CXX_COMPILER}" "MPICH_CXX=${CMAKE_CXX_COMPILER}" "${compiler}"
                    "${probe}" -o "${probe}.out"
            RESULT_VARIABLE status OUTPUT_QUIET ERROR_QUIET)
        if(NOT status EQUAL 0)
            message(STATUS "sluice: MPI's compiler is ${compiler}, but no program that includes mpi.h compiles and links with it, "
                           "${without}")
            return()
        endif()
    endif()
    # What FindMPI has kept of another MPI names files of that one.
    if(compiler)
        file(REAL_PATH "${compiler}" compiler)
    endif()
    if(NOT "$CACHE{SLUICE_MPI_FOUND_BY}" STREQUAL compiler)
        get_cmake_property(kept CACHE_VARIABLES)
        list(FILTER kept INCLUDE REGEX "^MPI(EXEC)?_")
        list(REMOVE_ITEM kept MPI_HOME MPI_CXX_COMPILER)
        foreach(name IN LISTS kept)
            unset(${name} CACHE)
        endforeach()
        set(SLUICE_MPI_FOUND_BY "${compiler}" CACHE INTERNAL "The compiler of the MPI that was found")
    endif()
    set(MPI_CXX_SKIP_MPICXX ON) # C++ bindings that MPI no longer has
    find_package(MPI QUIET COMPONENTS CXX)
    if(NOT MPI_CXX_FOUND)
        message(STATUS "sluice: MPI was not found, ${without}")
        return()
    endif()
    sluice_probe(mpi "${program}" LIBRARIES MPI::MPI_CXX)
    if(NOT mpi)
        message(STATUS "sluice: MPI is ${MPI_CXX_LIBRARIES}, but cannot be used (${mpi_PROBLEM}), ${without}")
        return()
    endif()
    if(NOT TARGET sluice::mpi)
        add_library(sluice::mpi INTERFACE IMPORTED GLOBAL)
        target_link_libraries(sluice::mpi INTERFACE MPI::MPI_CXX)
        target_compile_definitions(sluice::mpi INTERFACE SLUICE_HAS_MPI=1)
    endif()
    set(SLUICE_HAS_MPI ON PARENT_SCOPE)

    # More ranks than cores, and as root, are what Open MPI has options for, and others do by themselves.
    set(start "${MPIEXEC_EXECUTABLE}")
    execute_process(COMMAND "${MPIEXEC_EXECUTABLE}" --version OUTPUT_VARIABLE version ERROR_QUIET)
    if(version MATCHES "Open MPI|OpenRTE")
        list(APPEND start --oversubscribe --allow-run-as-root --mca btl_vader_single_copy_mechanism none)
    endif()
    execute_process(COMMAND ${start} -np 2 "${CMAKE_COMMAND}" -E true RESULT_VARIABLE status OUTPUT_QUIET ERROR_QUIET
                    TIMEOUT 60)
    if(status EQUAL 0)
        message(STATUS "sluice: MPI is ${MPI_CXX_LIBRARIES}, started by ${MPIEXEC_EXECUTABLE}")
        set(SLUICE_MPIEXEC "${start}" PARENT_SCOPE)
    else()
        message(STATUS "sluice: MPI is ${MPI_CXX_LIBRARIES}, but no mpiexec starts two processes here, so its tests are skipped "
                       "(openmpi-bin)")
    endif()
endfunction()
