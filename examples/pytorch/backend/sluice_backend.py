"""How pip builds the package: scikit-build-core, after a look at what it needs. What is missing is said in one sentence, at once,
and on pip's last line.

pip ends with a line of its own when a build fails, and hides the reason above it. Only what its own process refuses ends with what was
refused: so a package that cannot be built here requires a file whose name is the sentence. `build_wheel`, for other tools,
fails with the sentence.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import quote

sys.path.insert(0, str(Path(__file__).parent))
from find_torch import torch_folder, torch_version  # noqa: E402

Settings = "dict[str, Any] | None"
OLDEST_TORCH = (2, 11)
PROGRAM = "#include <string>\nint main() { return std::string(\"a\").starts_with(\"b\"); }\n"


def missing_torch(settings: Settings) -> str:
    """Why there is no PyTorch to build for; empty if there is."""
    given = [*(settings or {}), os.environ.get("CMAKE_ARGS", ""), os.environ.get("SKBUILD_CMAKE_DEFINE", "")]
    if any("SLUICE_TORCH_DIR" in text for text in given):  # CMake says whether that is right
        return ""
    folder = torch_folder()
    if folder is None:
        return f"PyTorch is not installed for {Path(sys.executable).name}, install it first (pip install torch)"
    version = torch_version(folder)
    if version < OLDEST_TORCH:
        return (f"PyTorch {version[0]}.{version[1]} is installed, and sluice needs 2.11 or later, install that first "
                "(pip install --upgrade torch)")
    return ""


def missing_compiler() -> str:
    """Why there is no C++ compiler to build with; empty if there is."""
    given = os.environ.get("CXX", "").split()
    candidates = [given] if given else [["c++"], ["g++"], ["clang++"]]
    found = [command for command in candidates if shutil.which(command[0])]
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "probe.cpp"
        source.write_text(PROGRAM, encoding="utf-8")
        for command in found:
            build = [*command, "-std=c++20", str(source), "-o", str(Path(folder) / "probe")]
            if subprocess.run(build, capture_output=True, check=False).returncode == 0:
                return ""
    advice = "install one first, for example Debian's g++ (apt-get install g++)"
    if given:
        return f"CXX is {Path(given[0]).name}, which compiles no C++20 program here, set another or {advice}"
    if found:
        return f"{found[0][0]} compiles no C++20 program here, {advice}"
    return f"no C++ compiler was found, {advice}"


def missing_tools() -> str:
    """Why there is nothing to build by; empty if there is. pip installs these itself, without --no-build-isolation."""
    if importlib.util.find_spec("scikit_build_core") is None:
        return "scikit-build-core is not installed, as --no-build-isolation expects, install it first (pip install scikit-build-core)"
    if not shutil.which("cmake") and importlib.util.find_spec("cmake") is None:
        return "CMake is not installed, as --no-build-isolation expects, install it first (pip install cmake)"
    if not any(map(shutil.which, ("ninja", "ninja-build", "make"))) and importlib.util.find_spec("ninja") is None:
        return "neither Ninja nor make is installed, as --no-build-isolation expects, install one first (pip install ninja)"
    return ""


def missing(settings: Settings) -> str:
    problem = missing_torch(settings) or missing_compiler() or missing_tools()
    return f"sluice: {problem}" if problem else ""


def refusing_metadata(folder: str, sentence: str) -> str:
    """Metadata that pip refuses with `sentence`, in which there is no slash."""
    name = "sluice-0.dist-info"
    (Path(folder) / name).mkdir()
    (Path(folder) / name / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: sluice\nVersion: 0\nRequires-Dist: sluice-build @ file:///{quote(sentence, safe='')}.whl\n",
        encoding="utf-8")
    (Path(folder) / name / "WHEEL").write_text("Wheel-Version: 1.0\n", encoding="utf-8")
    return name


def scikit_build_core() -> Any:
    from scikit_build_core import build
    return build


def get_requires_for_build_wheel(config_settings: Settings = None) -> list[str]:
    if importlib.util.find_spec("scikit_build_core") is None or missing_torch(config_settings) or missing_compiler():
        return []  # metadata says why
    return scikit_build_core().get_requires_for_build_wheel(config_settings)


def prepare_metadata_for_build_wheel(metadata_directory: str, config_settings: Settings = None) -> str:
    sentence = missing(config_settings)
    if sentence:
        return refusing_metadata(metadata_directory, sentence)
    return scikit_build_core().prepare_metadata_for_build_wheel(metadata_directory, config_settings)


def build_wheel(wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None) -> str:
    sentence = missing(config_settings)
    if sentence:
        raise SystemExit(sentence)
    return scikit_build_core().build_wheel(wheel_directory, config_settings, metadata_directory)


# Editable installations.
get_requires_for_build_editable = get_requires_for_build_wheel
prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel


def build_editable(wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None) -> str:
    sentence = missing(config_settings)
    if sentence:
        raise SystemExit(sentence)
    return scikit_build_core().build_editable(wheel_directory, config_settings, metadata_directory)


def get_requires_for_build_sdist(config_settings: Settings = None) -> list[str]:
    return scikit_build_core().get_requires_for_build_sdist(config_settings)


def build_sdist(sdist_directory: str, config_settings: Settings = None) -> str:
    return scikit_build_core().build_sdist(sdist_directory, config_settings)
