# Sets SLUICE_TORCH_DIR to the folder of a PyTorch of version 2.11 or later, which has include/ and lib/.
#
# pip builds packages in an environment of their own, in which PyTorch cannot be imported, and would have to be downloaded
# again. But the interpreter still knows where the real environment keeps its packages, and headers are all that is needed.

set(SLUICE_TORCH_DIR "" CACHE PATH "Folder of the Python package torch; found by itself where that is empty")
find_package(Python3 REQUIRED COMPONENTS Interpreter)
if(NOT SLUICE_TORCH_DIR)
    execute_process(
        COMMAND
            "${Python3_EXECUTABLE}" -c
            "import os, site, sys, sysconfig
places = [sysconfig.get_path('platlib'), sysconfig.get_path('purelib'), *site.getsitepackages(), site.getusersitepackages(), *sys.path]
found = [p for p in places if p and os.path.isfile(os.path.join(p, 'torch', 'include', 'torch', 'csrc', 'stable', 'library.h'))]
print(os.path.join(found[0], 'torch') if found else '')"
        OUTPUT_VARIABLE sluice_torch_found
        OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
    set(SLUICE_TORCH_DIR "${sluice_torch_found}")
endif()
if(NOT EXISTS "${SLUICE_TORCH_DIR}/include/torch/headeronly/version.h")
    message(FATAL_ERROR "PyTorch was not found beside ${Python3_EXECUTABLE}; expected version 2.11 or later: install it "
                        "first, or name its folder with -DSLUICE_TORCH_DIR=…")
endif()
file(STRINGS "${SLUICE_TORCH_DIR}/include/torch/headeronly/version.h" sluice_torch_lines REGEX "#define TORCH_VERSION_M")
string(REGEX MATCH "TORCH_VERSION_MAJOR ([0-9]+)" _ "${sluice_torch_lines}")
set(sluice_torch_version "${CMAKE_MATCH_1}")
string(REGEX MATCH "TORCH_VERSION_MINOR ([0-9]+)" _ "${sluice_torch_lines}")
string(APPEND sluice_torch_version ".${CMAKE_MATCH_1}")
if(sluice_torch_version VERSION_LESS 2.11)
    message(FATAL_ERROR "PyTorch ${sluice_torch_version} is at ${SLUICE_TORCH_DIR}; expected 2.11 or later, whose stable "
                        "ABI the operators use")
endif()
if(SLUICE_TORCH_CUDA AND NOT EXISTS "${SLUICE_TORCH_DIR}/lib/libtorch_cuda.so")
    if(SLUICE_CUDA STREQUAL "ON")
        message(FATAL_ERROR "SLUICE_CUDA is ON, but PyTorch at ${SLUICE_TORCH_DIR} was built for the CPU; expected one with "
                            "libtorch_cuda.so")
    endif()
    message(STATUS "sluice: PyTorch was built for the CPU, and so are the operators")
    set(SLUICE_TORCH_CUDA OFF)
endif()
message(STATUS "sluice: PyTorch ${sluice_torch_version} at ${SLUICE_TORCH_DIR}")
