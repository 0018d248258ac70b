/* Stands between a process and its disk (LD_PRELOAD) for tests/integration/test_journal_durability.py.
 *
 * Counts completed fsync/fdatasync calls on files whose name contains "memory.db", and can be told to let
 * them fail, or to let writes fail as a full disk does. Nothing else is changed.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int completed, sync_fails, disk_full;

int disk_syncs(void) { return __atomic_load_n(&completed, __ATOMIC_SEQ_CST); }
void disk_sync_fails(int on) { sync_fails = on; }
void disk_is_full(int on) { disk_full = on; }

static int watched(int fd) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return strstr(path, "memory.db") != NULL;
}

static int sync_with(const char *name, int fd) {
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    if (!watched(fd)) return real(fd);
    if (sync_fails) { errno = EIO; return -1; }
    int result = real(fd);
    if (result == 0) __atomic_add_fetch(&completed, 1, __ATOMIC_SEQ_CST);
    return result;
}

int fsync(int fd) { return sync_with("fsync", fd); }
int fdatasync(int fd) { return sync_with("fdatasync", fd); }

static ssize_t write_with(const char *name, int fd, const void *bytes, size_t count, off_t at) {
    if (disk_full && watched(fd)) { errno = ENOSPC; return -1; }
    ssize_t (*real)(int, const void *, size_t, off_t) =
        (ssize_t(*)(int, const void *, size_t, off_t))dlsym(RTLD_NEXT, name);
    return real(fd, bytes, count, at);
}

ssize_t pwrite(int fd, const void *b, size_t n, off_t at) { return write_with("pwrite", fd, b, n, at); }
ssize_t pwrite64(int fd, const void *b, size_t n, off_t at) { return write_with("pwrite64", fd, b, n, at); }
