# Sets SLUICE_TORCH_DIR to the folder of a PyTorch of version 2.11 or later, which has include/ and lib/.

set(SLUICE_TORCH_DIR "" CACHE PATH "Folder of the Python package torch; found by itself where that is empty")
find_package(Python3 REQUIRED COMPONENTS Interpreter)
if(NOT SLUICE_TORCH_DIR)
    execute_process(
        COMMAND "${Python3_EXECUTABLE}" "${CMAKE_CURRENT_LIST_DIR}/../backend/find_torch.py"
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
if(SLUICE_TORCH_CUDA)
    set(sluice_torch_problem "")
    file(STRINGS "${SLUICE_TORCH_DIR}/version.py" sluice_torch_lines REGEX "^cuda.*'[0-9]+\\.")
    string(REGEX MATCH "'([0-9]+)\\." _ "${sluice_torch_lines}")
    if(NOT EXISTS "${SLUICE_TORCH_DIR}/lib/libtorch_cuda.so")
        set(sluice_torch_problem "PyTorch at ${SLUICE_TORCH_DIR} was built for the CPU")
    elseif(NOT CMAKE_MATCH_1 STREQUAL CUDAToolkit_VERSION_MAJOR)
        string(CONCAT sluice_torch_problem "PyTorch at ${SLUICE_TORCH_DIR} uses CUDA ${CMAKE_MATCH_1}, and the toolkit is "
                      "version ${CUDAToolkit_VERSION_MAJOR}")
    endif()
    if(sluice_torch_problem AND SLUICE_CUDA STREQUAL "ON")
        message(FATAL_ERROR "SLUICE_CUDA is ON, but ${sluice_torch_problem}; expected the same CUDA for both.")
    elseif(sluice_torch_problem)
        message(STATUS "sluice: ${sluice_torch_problem}, so the operators are built for the CPU alone")
        set(SLUICE_TORCH_CUDA OFF)
        set(SLUICE_TORCH_WITHOUT_CUDA "${sluice_torch_problem}")
    endif()
endif()
message(STATUS "sluice: PyTorch ${sluice_torch_version} at ${SLUICE_TORCH_DIR}")
