"""The practice cluster: a real Slurm on one Linux machine, which leaves nothing behind.

Everything runs in namespaces of its own (mounts, processes, host name, cgroups) on a
copy-on-write view of the machine's root file system. In this view there are the users marie and
martin, Slurm's packages and their configuration; the machine itself sees none of it. The network
is the machine's own, because pip needs it; all daemons listen on 127.0.0.1 only.

    control.py   start, stop, status, run: the machine's side
    boot.py      the first process inside: mounts the view, starts the daemons
    layer.py     the configuration, written from the templates in files/ and from stand_ins/
    packages.py  Slurm's Debian packages, unpacked into the checkout, not installed
    cgroups.py   the cluster's own corner of the machine's cgroups

Standard library only: it is run by the system's python3, as root.
"""

from course.cluster.control import Cluster
from course.cluster.errors import ClusterError

__all__ = ["Cluster", "ClusterError"]
