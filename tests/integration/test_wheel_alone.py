"""A new virtual environment with the wheel alone tells the story of the sample; the checkout is not on its path."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import packages
from tests.integration.interfaces.serving import clean_env


def test_the_wheel_in_an_environment_of_its_own_runs_the_demo(tmp_path: Path) -> None:
    wheel = packages.build_wheel(tmp_path / "dist")
    venv.create(tmp_path / "alone", with_pip=False, symlinks=True)
    python = tmp_path / "alone" / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
    subprocess.run([*pip, "--no-deps", "--no-index", str(wheel)], check=True, timeout=120)
    [site] = (tmp_path / "alone" / "lib").glob("python*/site-packages")
    # The dependencies are those of this environment. A path that a .pth file names is not searched for
    # more .pth files, so this environment's own link to the checkout does not count there.
    (site / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n", encoding="utf-8")
    env = clean_env(tmp_path / "home", PYTHONPATH="", PYTHONWARNINGS="default")
    where = subprocess.run(
        [str(python), "-c", "import pps; print(pps.__file__)"],
        env=env,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert where.stdout.startswith(str(site))
    ended = subprocess.run(
        [str(python.with_name("pps")), "demo"],
        env=env,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert "none of one came back to the other" in ended.stdout
    assert "5. iris keeps goals" in ended.stdout
