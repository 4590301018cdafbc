"""A recipe for Conan 2: `conan create packaging/conan` in a copy of hfsb.

The sources are those of the folder above packaging/. Consumers get the targets
hfsb::hfsb (headers) and hfsb::impl (compiled).
"""

import os
import re

from conan import ConanFile
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load

TOP = os.path.join("..", "..")


class HfsbConan(ConanFile):
    name = "hfsb"
    description = "Single C headers that give an LLM agent a sandbox"
    homepage = "https://github.com/hfsb/hfsb"
    url = "https://github.com/hfsb/hfsb"
    license = "MIT"
    topics = ("sandbox", "agent", "llm", "mcp", "single-header")
    package_type = "static-library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"fPIC": [True, False]}
    default_options = {"fPIC": True}

    def set_version(self):
        text = load(self, os.path.join(self.recipe_folder, TOP, "hfsb.h"))
        self.version = re.search(r'#define HFSB_VERSION +"(.*)"', text).group(1)

    def export_sources(self):
        top = os.path.join(self.recipe_folder, TOP)
        for pattern in ("hfsb*.h", "CMakeLists.txt", "LICENSE",
                        "packaging/hfsb.pc.in"):
            copy(self, pattern, top, self.export_sources_folder)

    def configure(self):
        self.settings.rm_safe("compiler.cppstd")
        self.settings.rm_safe("compiler.libcxx")

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.variables["HFSB_PROGRAMS"] = False
        toolchain.variables["HFSB_INSTALL"] = True
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()
        copy(self, "LICENSE", self.source_folder,
             os.path.join(self.package_folder, "licenses"))

    def package_info(self):
        self.cpp_info.set_property("cmake_file_name", "hfsb")
        headers = self.cpp_info.components["headers"]
        headers.set_property("cmake_target_name", "hfsb::hfsb")
        headers.set_property("pkg_config_name", "hfsb")
        headers.libdirs = []
        headers.system_libs = ["pthread"]
        impl = self.cpp_info.components["impl"]
        impl.set_property("cmake_target_name", "hfsb::impl")
        impl.set_property("pkg_config_name", "hfsb-impl")
        impl.libs = ["hfsb"]
        impl.defines = ["HFSB_HUB", "HFSB_IMPLEMENTATION_DONE",
                        "HFSB_SERVER_IMPLEMENTATION_DONE"]
        impl.requires = ["headers"]
