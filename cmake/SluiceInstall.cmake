# Installs the headers, a package for find_package(sluice CONFIG), and one for pkg-config.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(sluice_package_dir "${CMAKE_INSTALL_DATADIR}/cmake/sluice")

install(
    TARGETS sluice
    EXPORT sluiceTargets
    INCLUDES
    DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
set(sluice_compatibility ARCH_INDEPENDENT)
if(SLUICE_INSTALL_COMPILED)
    set(sluice_compatibility "")
    # A package for Debian, say, has its libraries in a folder of the processor's, and the rest in share.
    install(
        TARGETS sluice_compiled sluice_compiled_checked
        EXPORT sluiceTargets
        ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
        INCLUDES
        DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
endif()
install(
    DIRECTORY "${PROJECT_SOURCE_DIR}/include/sluice"
    DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
    FILES_MATCHING
    PATTERN "*.hpp"
    PATTERN "*.inl"
    PATTERN "*.cuh"
    PATTERN "compiled.cpp")
install(
    EXPORT sluiceTargets
    NAMESPACE sluice::
    DESTINATION "${sluice_package_dir}")

configure_package_config_file(
    "${PROJECT_SOURCE_DIR}/cmake/sluiceConfig.cmake.in" "${CMAKE_CURRENT_BINARY_DIR}/sluiceConfig.cmake"
    INSTALL_DESTINATION "${sluice_package_dir}")
write_basic_package_version_file(
    "${CMAKE_CURRENT_BINARY_DIR}/sluiceConfigVersion.cmake" COMPATIBILITY SameMinorVersion
    ${sluice_compatibility})
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/sluiceConfig.cmake"
              "${CMAKE_CURRENT_BINARY_DIR}/sluiceConfigVersion.cmake"
              "${PROJECT_SOURCE_DIR}/cmake/sluiceCollective.cmake" "${PROJECT_SOURCE_DIR}/cmake/sluiceProbe.cmake"
              "${PROJECT_SOURCE_DIR}/cmake/sluiceToolkit.cmake"
        DESTINATION "${sluice_package_dir}")
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/sluice")

configure_file("${PROJECT_SOURCE_DIR}/cmake/packaging/sluice.pc.in" "${CMAKE_CURRENT_BINARY_DIR}/sluice.pc" @ONLY)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/sluice.pc" DESTINATION "${CMAKE_INSTALL_DATADIR}/pkgconfig")
if(SLUICE_INSTALL_COMPILED)
    configure_file("${PROJECT_SOURCE_DIR}/cmake/packaging/sluice-compiled.pc.in"
                   "${CMAKE_CURRENT_BINARY_DIR}/sluice-compiled.pc" @ONLY)
    install(FILES "${CMAKE_CURRENT_BINARY_DIR}/sluice-compiled.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
endif()
