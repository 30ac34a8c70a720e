"""The two places where takes are played: the practice cluster, and the Slurm of this machine.

Both offer the same: who plays, how to open a shell, how to run a command unseen, and how to lay
out the lab's files as a student has them.
"""

import getpass
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from course import bundle
from course.cluster import Cluster
from course.scenes import LAB, ROOT
from course.values import load_values

LAB_FOLDER = bundle.FOLDER  # in a student's home
# The practice cluster's own course values, in what every new home is a copy of.
_OWN_VALUES = f"/etc/skel/{LAB_FOLDER}/00_setup/course.env"


class Practice:
    """The practice cluster: marie plays, martin helps unseen, and all homes may be changed."""

    name = "practice cluster"
    user = "marie"
    helpers = ("martin",)
    has_gpu = False
    longest_wait = 600  # seconds, for a job

    def __init__(self, cluster: Cluster | None = None, lab: Path = LAB):
        self._cluster = cluster or Cluster()
        self._lab = lab
        values = self.run(self.user, f"cat {_OWN_VALUES}").stdout
        with tempfile.NamedTemporaryFile("w", suffix="course.env") as file:
            file.write(values)
            file.flush()
            self.values = load_values(Path(file.name))

    def shell_command(self, user: str) -> list[str]:
        return self._cluster.shell_command(user)

    def run(self, user: str, command: str) -> subprocess.CompletedProcess[str]:
        return self._cluster.run(user, command)

    def lay_out(self) -> None:
        """Put the lab into the home anew, from the bundle, with the cluster's own course values."""
        command = (
            f"cat >{bundle.NAME} && rm -rf {LAB_FOLDER}/* && tar --extract --file={bundle.NAME} "
            f"&& cp {_OWN_VALUES} {LAB_FOLDER}/00_setup/"
        )
        packed = bundle.make_bundle(self._lab)
        subprocess.run([*self.shell_command(self.user), "-c", command], input=packed, check=True)

    def clean_home(self) -> None:
        """Remove what a take left in the home outside the lab's folder."""
        keep = LAB_FOLDER.split("/")[0]
        self.run(self.user, f"find ~ -mindepth 1 -maxdepth 1 ! -name {keep} -exec rm -rf {{}} +")

    def close(self) -> None:
        """Nothing to do: the cluster goes on."""


class Here:
    """The Slurm of this machine, Alpha for one. A folder in the home serves as the home."""

    helpers = ()
    has_gpu = True
    longest_wait = 24 * 3600  # seconds, for a job: there is a queue of other people

    def __init__(self, lab: Path = LAB):
        self._lab = lab
        self.values = load_values(lab / "00_setup/course.env")
        self.name = self.values["CLUSTER"].capitalize()
        self.user = getpass.getuser()
        self._home = Path.home() / "behind-llms-rehearsal"
        self._home.mkdir(exist_ok=True)

    def shell_command(self, user: str) -> list[str]:
        # Without this checkout's own Python, which a student does not have.
        folders = os.environ["PATH"].split(":")
        path = ":".join(folder for folder in folders if not Path(folder).is_relative_to(ROOT))
        home = [f"--chdir={self._home}", f"HOME={self._home}"]
        clean = ["env", "--unset=PYTHONPATH", *home, f"PATH={path}"]
        return [*clean, "bash", "--login"]

    def run(self, user: str, command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self.shell_command(user), "-c", command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
        )

    def lay_out(self) -> None:
        """Put the lab into the rehearsal's home anew, from the bundle."""
        shutil.rmtree(self._home / LAB_FOLDER, ignore_errors=True)
        archive = self._home / bundle.NAME
        archive.write_bytes(bundle.make_bundle(self._lab))
        shutil.unpack_archive(archive, self._home)

    def clean_home(self) -> None:
        """Remove what a take left in the rehearsal's home outside the lab's folder."""
        for path in self._home.iterdir():
            if path.name != LAB_FOLDER.split("/")[0]:
                real_folder = path.is_dir() and not path.is_symlink()
                shutil.rmtree(path) if real_folder else path.unlink()

    def close(self) -> None:
        """Remove the rehearsal's home. The workspace stays: it is the student's own."""
        shutil.rmtree(self._home, ignore_errors=True)
