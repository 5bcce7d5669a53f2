"""Build step: a wheel carries the jobs, the agents and conf/ below `amemgym_env/_jobs`."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithJobs(build_py):
    """Copies the folders of the jobs into the package; an editable install uses them in place."""

    def run(self) -> None:
        """Build the package, then add the jobs."""
        super().run()
        if not self.editable_mode:
            for name in ("agents", "conf", "experiments"):
                shutil.copytree(
                    name,
                    Path(self.build_lib, "amemgym_env", "_jobs", name),
                    ignore=shutil.ignore_patterns("__pycache__"),
                    dirs_exist_ok=True,
                )


setup(cmdclass={"build_py": BuildWithJobs})
