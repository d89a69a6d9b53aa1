# The link between hosts made of namespaces, with delay: perf/relay carries its packets.
import os
import subprocess
import sys

RELAY = os.path.join(os.environ.get("TUTTI_BUILD", "build/release"), "perf", "relay")


class SlowLink:
    """Every packet between those hosts takes so many microseconds, until close()."""

    def __init__(self, hosts, delay_us):
        words = [word for number, host in enumerate(hosts.all)
                 for word in (str(host.pid), f"10.78.0.{number + 1}")]
        self.process = subprocess.Popen([RELAY, str(delay_us), *words], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        if self.process.stdout.readline() != b"ready\n":
            sys.exit(f"{RELAY} did not begin")

    def close(self):
        self.process.stdin.close()
        self.process.wait()
