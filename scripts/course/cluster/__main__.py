"""The command line of the practice cluster."""

import argparse
import os
import subprocess
import sys

from course.cluster import Cluster, ClusterError


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/cluster", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("start", help="start the cluster, fresh")
    commands.add_parser("stop", help="end it; its homes and workspaces are removed")
    commands.add_parser("status", help="say whether it runs (exit code 0) or not (3)")
    shell = commands.add_parser("shell", help="log in")
    shell.add_argument("user", nargs="?", default="marie", help="marie (the default) or martin")
    run = commands.add_parser("run", help="run one command in a login shell")
    run.add_argument("user", help="marie or martin")
    run.add_argument("command_line", metavar="CMD", help="one word: put it in quotes")
    options = parser.parse_args()
    cluster = Cluster()
    try:
        if options.command == "start":
            cluster.start(lambda text: print(text, flush=True))
            print("The practice cluster is running. Log in: scripts/cluster shell")
        elif options.command == "stop":
            cluster.stop()
        elif options.command == "status":
            return status(cluster)
        else:
            command = cluster.shell_command(options.user)
            if options.command == "run":
                command += ["-c", options.command_line]
            os.execvp(command[0], command)
    except (ClusterError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Interrupted. To start the cluster: scripts/cluster start", file=sys.stderr)
        return 130
    return 0


def status(cluster: Cluster) -> int:
    dead = cluster.dead_daemons()
    if dead is None:
        print("The practice cluster is not running. Start it: scripts/cluster start")
        return 3
    if dead:
        print(f"No longer running: {', '.join(dead)}. Start it anew: scripts/cluster start")
        return 3
    print("The practice cluster is running. Log in: scripts/cluster shell", flush=True)
    return subprocess.run([*cluster.shell_command("marie"), "-c", "sinfo; squeue"]).returncode


if __name__ == "__main__":
    sys.exit(main())
