"""Conan recipe. From the repository's root: conan create cmake/packaging"""

import os
import re

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.files import copy, load

REPOSITORY = os.path.join("..", "..")


class Sluice(ConanFile):
    name = "sluice"
    description = "Stages of CUDA work that overlap on successive batches"
    license = "MIT"
    package_type = "header-library"
    settings = "os", "compiler"
    no_copy_source = True

    def set_version(self):
        config = load(self, os.path.join(self.recipe_folder, REPOSITORY, "include", "sluice", "backend", "config.hpp"))
        self.version = ".".join(
            re.search(rf"version_{part} = (\d+)", config)[1] for part in ("major", "minor", "patch")
        )

    def export_sources(self):
        root = os.path.join(self.recipe_folder, REPOSITORY)
        copy(self, "LICENSE", root, self.export_sources_folder)
        copy(self, "include/*", root, self.export_sources_folder)

    def validate(self):
        check_min_cppstd(self, 20)

    def package(self):
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        copy(self, "*", os.path.join(self.source_folder, "include"), os.path.join(self.package_folder, "include"))

    def package_id(self):
        self.info.clear()

    def package_info(self):
        self.cpp_info.bindirs = []
        self.cpp_info.libdirs = []
        self.cpp_info.system_libs = ["pthread"]
