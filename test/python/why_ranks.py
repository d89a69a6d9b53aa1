# ctest: timeout=120
# A program asks why its own job waits: the text of `tutti why`, with Python's lines.
import os
import re
import threading
import time

from support import Case, main, program, tutti

world = tutti.init(timeout=40)
N, ME = world.size, world.rank


class Why(Case):
    def test_who_keeps_the_others(self):
        world.barrier()
        if ME == N - 1:
            end, text = time.monotonic() + 30, ""
            others = "ranks 0, 1" if N == 3 else f"ranks 0-{N - 2}"
            while f"waiting: {others}: all_gather" not in text and time.monotonic() < end:
                text = tutti.why()
            self.assertLessEqual(max(map(len, text.splitlines())), 80)
            text = re.sub(r"\n {6}(?=\S)", " ", text)          # where a line is continued
            self.assertRegex(text, rf"(?m)^  waiting: {others}: all_gather .* at "
                                   r"\S*why_ranks.py:\d+ ")
            self.assertRegex(text, rf"(?m)^  kept by: rank {ME}: in its own code for .*, last: "
                                   r"barrier #\d+ at \S*why_ranks.py:\d+")
            self.assertIn(f"py-spy dump --pid {os.getpid()}", text)
            self.assertLessEqual(len(text.splitlines()), 5)
        world.all_gather(b"x")

    def test_a_thread_asks_while_its_rank_waits(self):
        """The call waits outside the interpreter, so another thread can ask."""
        said, other = [], world.split(0)     # one thread uses a comm at a time

        def ask():
            end = time.monotonic() + 30
            while time.monotonic() < end:
                text = tutti.why()
                if "  waiting: " in text and "why_ranks.py:" in text:
                    said.append(text)
                    break
            other.set("asked", b"1")
        if ME == 1:
            thread = threading.Thread(target=ask)
            thread.start()
            world.recv(bytearray(1), 0, tag=9)
            thread.join()
            self.assertEqual(len(said), 1)
        elif ME == 0:
            world.get("asked")
            world.send(b"x", 1, tag=9)
        world.barrier()

    def test_without_a_job(self):
        ended, said = program("import tutti; assert tutti.why() == '', tutti.why()",
                              TUTTI_ARENA="", RANK="", WORLD_SIZE="")
        self.assertEqual((ended, said), (0, ""))


if __name__ == "__main__":
    main()
