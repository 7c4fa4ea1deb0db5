"""A small disk for a store, which can be filled: a tmpfs in a mount namespace of this process and
its children, so that nothing is left mounted whatever becomes of them. Only root may have one."""
import contextlib
import ctypes
import os
import shutil
import subprocess
import threading

NEW_MOUNTS = 0x00020000  # CLONE_NEWNS
SPARE = 256 << 20  # bytes that it has beyond what is there at first


def separate():
    """Whether disks can be had from now on."""
    if ctypes.CDLL(None, use_errno=True).unshare(NEW_MOUNTS):
        return False
    return subprocess.run(["mount", "--make-rprivate", "/"], capture_output=True).returncode == 0


class Disk:
    """Under a folder that exists; nobody may have it open."""

    def __init__(self, path):
        self.path = path
        was, aside = os.stat(path), path + ".aside"
        os.rename(path, aside)
        os.mkdir(path)
        size = SPARE + sum(
            os.lstat(os.path.join(d, f)).st_size for d, _, names in os.walk(aside) for f in names)
        subprocess.run(["mount", "-t", "tmpfs", "-o",
                        f"size={size},mode={was.st_mode & 0o7777:o}", "tmpfs", path], check=True)
        # InnoDB dies if its log has no room.
        subprocess.run(["cp", "-a", "--sparse=never", aside + "/.", path], check=True)
        os.chown(path, was.st_uid, was.st_gid)
        shutil.rmtree(aside)

    @staticmethod
    def _fill(f):
        """One that asks for too much gets nothing: so it asks for less and less."""
        size = SPARE
        while size >= 4096:
            try:
                os.posix_fallocate(f.fileno(), os.fstat(f.fileno()).st_size, size)
            except OSError:
                size //= 2

    @contextlib.contextmanager
    def full(self):
        """It is, and what others give back meanwhile is taken at once."""
        over = threading.Event()

        def keep_full():
            with open(os.path.join(self.path, "ballast"), "ab") as f:
                os.unlink(f.name)
                while not over.is_set():
                    self._fill(f)
                    over.wait(0.02)
        thread = threading.Thread(target=keep_full)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def unmount(self):
        subprocess.run(["umount", "--lazy", self.path], check=True)
