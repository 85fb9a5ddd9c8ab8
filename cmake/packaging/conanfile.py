"""Conan recipe. From the repository's root: conan create cmake/packaging -s compiler.cppstd=20
With the library sluice::compiled, too: conan create cmake/packaging -s compiler.cppstd=20 -o 'sluice/*:compiled=True'

The package holds sluice's own sluiceConfig.cmake, which looks for the CUDA toolkit on the machine that uses it. A project
finds it through Conan's generator CMakeToolchain.
"""

import os
import re

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeToolchain
from conan.tools.files import copy, load

REPOSITORY = os.path.join("..", "..")


class Sluice(ConanFile):
    name = "sluice"
    description = "Stages of CUDA work that overlap on successive batches"
    license = "MIT"
    settings = "os", "compiler", "build_type", "arch"
    options = {"compiled": [True, False]}
    default_options = {"compiled": False}
    no_copy_source = True

    def set_version(self):
        config = load(self, os.path.join(self.recipe_folder, REPOSITORY, "include", "sluice", "backend", "config.hpp"))
        self.version = ".".join(
            re.search(rf"version_{part} = (\d+)", config)[1] for part in ("major", "minor", "patch")
        )

    def export_sources(self):
        root = os.path.join(self.recipe_folder, REPOSITORY)
        for pattern in ("LICENSE", "CMakeLists.txt", "cmake/*", "include/*"):
            copy(self, pattern, root, self.export_sources_folder)

    def validate(self):
        check_min_cppstd(self, 20)

    def generate(self):
        toolchain = CMakeToolchain(self)
        for part in ("TESTS", "EXAMPLES", "BENCHMARKS"):
            toolchain.cache_variables[f"SLUICE_BUILD_{part}"] = False
        # Headers ask on the machine that uses them; a library has what there is on this one.
        toolchain.cache_variables["SLUICE_CUDA"] = "AUTO" if self.options.compiled else "OFF"
        toolchain.cache_variables["SLUICE_INSTALL_COMPILED"] = bool(self.options.compiled)
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))

    def package_id(self):
        if not self.info.options.compiled:
            self.info.clear()

    def package_info(self):
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = [os.path.join("share", "cmake", "sluice")]
        self.cpp_info.bindirs = []
        self.cpp_info.libdirs = ["lib"] if self.options.compiled else []
