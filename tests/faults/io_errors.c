/* I/O error injection: a preloaded library that makes writes, syncs or reads of database files fail while a control file exists.
 *
 * FAULTS_CONTROL names the control file. The file contains the words of the calls that fail: write, sync, read. The calls fail with EIO,
 * or with EROFS if the file contains that word. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

/* The error that a call fails with; 0 if the call does not fail. */
static int failure(const char *call, int fd) {
    const char *control = getenv("FAULTS_CONTROL");
    if (!control || access(control, F_OK) != 0) return 0;
    char words[64] = "", link[64], path[512];
    int file = open(control, O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    ssize_t (*plain_read)(int, void *, size_t) = dlsym(RTLD_NEXT, "read");
    ssize_t length = plain_read(file, words, sizeof words - 1);
    close(file);
    if (length <= 0 || !strstr(words, call)) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    length = readlink(link, path, sizeof path - 1);
    if (length <= 0) return 0;
    path[length] = 0;
    if (strstr(path, ".db") == NULL || strstr(path, ".db.index") != NULL || strstr(path, "-shm") != NULL) return 0;
    return strstr(words, "EROFS") ? EROFS : EIO;
}

#define FAILING(word, fd) { int error = failure(word, fd); if (error) { errno = error; return -1; } }

ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t at) {
    FAILING("write", fd)
    return ((ssize_t (*)(int, const void *, size_t, off64_t))dlsym(RTLD_NEXT, "pwrite64"))(fd, bytes, count, at);
}
ssize_t pwrite(int fd, const void *bytes, size_t count, off_t at) {
    FAILING("write", fd)
    return ((ssize_t (*)(int, const void *, size_t, off_t))dlsym(RTLD_NEXT, "pwrite"))(fd, bytes, count, at);
}
ssize_t pread64(int fd, void *bytes, size_t count, off64_t at) {
    FAILING("read", fd)
    return ((ssize_t (*)(int, void *, size_t, off64_t))dlsym(RTLD_NEXT, "pread64"))(fd, bytes, count, at);
}
ssize_t pread(int fd, void *bytes, size_t count, off_t at) {
    FAILING("read", fd)
    return ((ssize_t (*)(int, void *, size_t, off_t))dlsym(RTLD_NEXT, "pread"))(fd, bytes, count, at);
}
int fdatasync(int fd) {
    FAILING("sync", fd)
    return ((int (*)(int))dlsym(RTLD_NEXT, "fdatasync"))(fd);
}
int fsync(int fd) {
    FAILING("sync", fd)
    return ((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(fd);
}
