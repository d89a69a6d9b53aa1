# hosts.py HOSTS FOLDER TOLD COMMAND...: a command on a machine with hosts around it
# (hosts_support.py), at 10.77.0.1, 10.77.0.2 … The command is on the wire between them, at
# 10.77.0.100; FOLDER/agent enters a host, as a launcher wants it. Who makes FOLDER/cut cuts the
# link of the second host.
# TOLD: of a job that fails, and whose launcher may wait for ever, or end before its ranks: it is
# over when so many ranks have made a file FOLDER/RANK, or when the launcher and all programs in
# FOLDER have ended; the launcher is ended then.
import atexit
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))
import hosts_support  # noqa: E402

AGENT = """#!/bin/bash
while [[ $1 == -* ]]; do shift; done
case $1 in
{hosts}*) echo "agent: no host $1" >&2; exit 9 ;;
esac
if [[ $TMPDIR == {folder}/* ]]; then export TMPDIR=$TMPDIR/$1; mkdir -p "$TMPDIR"; fi
shift
exec nsenter -t "$pid" -m -u -i -n -p -- bash -c "$*"
"""


def ended(launcher):
    """It and its agents are a process group of their own; the hosts end with this process."""
    os.killpg(launcher.pid, signal.SIGKILL)
    launcher.wait()


def live(folder):
    """Programs in there run."""
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/cmdline", "rb") as file:
                if file.read().startswith(os.fsencode(folder) + b"/"):
                    return True
        except OSError:                                  # it has ended
            pass
    return False


def main():
    why = hosts_support.refusal()
    if why:
        print(why)
        return 77
    hosts = hosts_support.Hosts(int(sys.argv[1]))
    folder, told = sys.argv[2], int(sys.argv[3])
    wire = ["nsenter", "-t", str(hosts.wire), "-n"]
    subprocess.run(wire + ["ip", "link", "set", "lo", "up"], check=True)
    subprocess.run(wire + ["ip", "addr", "add", "10.77.0.100/24", "dev", "bridge"], check=True)
    agent = os.path.join(folder, "agent")
    with open(agent, "w") as file:
        cases = "".join(f"{h.address}) pid={h.pid} ;;\n" for h in hosts.all)
        file.write(AGENT.format(folder=folder, hosts=cases))
    os.chmod(agent, 0o755)
    cut = os.path.join(folder, "cut")
    command = subprocess.Popen(wire + sys.argv[4:], start_new_session=True)
    atexit.register(lambda: command.poll() is None and ended(command))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    while command.poll() is None or told and live(folder):
        if os.path.exists(cut):
            hosts.link(1, "down")
            os.unlink(cut)
        if told and sum(name.isdigit() for name in os.listdir(folder)) >= told:
            return 0
        time.sleep(0.005)
    print("crossed: " + " ".join(str(sum(hosts.bytes(n))) for n in range(len(hosts.all))))
    return command.returncode if command.returncode >= 0 else 128 - command.returncode


code = main()
sys.stdout.flush()
sys.exit(code)
