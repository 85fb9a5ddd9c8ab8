# Overlay port, of the working tree that it lies in. In that tree:
#     vcpkg install sluice --overlay-ports=cmake/packaging/vcpkg --binarysource=clear
#     vcpkg install 'sluice[compiled]' --overlay-ports=cmake/packaging/vcpkg --binarysource=clear    with the library sluice::compiled
# vcpkg does not see that the tree has changed: what it built of an older one would come out of its cache. In manifest mode set
# VCPKG_BINARY_SOURCES=clear, and remove vcpkg_installed after a change.

get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../../../.." ABSOLUTE)

# Headers ask for a toolkit on the machine that uses them; a library has what there is on this one.
set(options -DSLUICE_CUDA=OFF)
if("compiled" IN_LIST FEATURES)
    vcpkg_check_linkage(ONLY_STATIC_LIBRARY)
    set(options -DSLUICE_CUDA=AUTO -DSLUICE_INSTALL_COMPILED=ON)
endif()
vcpkg_cmake_configure(
    SOURCE_PATH "${SOURCE_PATH}"
    OPTIONS ${options} -DSLUICE_BUILD_TESTS=OFF -DSLUICE_BUILD_EXAMPLES=OFF -DSLUICE_BUILD_BENCHMARKS=OFF)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH share/cmake/sluice)
vcpkg_fixup_pkgconfig()

file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share"
     "${CURRENT_PACKAGES_DIR}/share/doc")
if(NOT "compiled" IN_LIST FEATURES)
    # Headers alone: what differs between the two configurations is nothing.
    file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug" "${CURRENT_PACKAGES_DIR}/lib")
endif()
set(VCPKG_POLICY_SKIP_PKGCONFIG_CHECK enabled) # sluice.pc serves both configurations, although it links with -pthread
file(INSTALL "${CMAKE_CURRENT_LIST_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
