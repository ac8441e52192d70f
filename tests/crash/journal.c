/* Writes down, in order, all that a process does to the files under a directory, and what it acknowledges.

   LD_PRELOAD=journal.so JOURNAL=file JOURNAL_ROOT=/absolute/directory program

   A record: kind, length of the first text, of the second, file (inode), offset, length; the texts; the bytes.

       C path         a file was created       W inode offset bytes   written
       D path         a directory was made     T inode length         truncated
       R path path    renamed                  S inode                a file's content was synced
       L path path    linked                   Y path                 a directory's names were synced
       U path         deleted                  A bytes                written to the standard output

   The lock is held over each call and its record, so the order of records is that of the calls. Nothing is really
   synced: nobody cuts this machine off. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES 65536

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int out = -1;
static const char *root;
static size_t root_length;
static uint64_t inode_of[FILES]; /* 0: not ours */
static char is_directory[FILES];

#define REAL(result, name, ...) \
    static result (*real)(__VA_ARGS__); \
    if (!real) real = (result (*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

static ssize_t write_out(const void *data, size_t length) {
    REAL(ssize_t, "write", int, const void *, size_t);
    return real(out, data, length);
}

__attribute__((constructor)) static void begin(void) {
    root = getenv("JOURNAL_ROOT");
    const char *path = getenv("JOURNAL");
    if (!root || !path) return;
    root_length = strlen(root);
    int (*real)(const char *, int, ...) = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open");
    out = real(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

static int ours(const char *path) { return out >= 0 && path && !strncmp(path, root, root_length); }
static uint64_t held(int fd) { return out >= 0 && fd >= 0 && fd < FILES ? inode_of[fd] : 0; }

static void note(char kind, const char *a, const char *b, uint64_t inode, uint64_t offset, const void *data,
                 uint64_t length) {
    struct __attribute__((packed)) { char kind; uint32_t a, b; uint64_t inode, offset, length; } head = {
        kind, a ? strlen(a) : 0, b ? strlen(b) : 0, inode, offset, data ? length : 0};
    if (write_out(&head, sizeof head) < 0 || (a && write_out(a, head.a) < 0) || (b && write_out(b, head.b) < 0) ||
        (data && write_out(data, length) < 0))
        abort();
}

static int opened(int fd, const char *path, int flags, int existed) {
    struct stat s;
    if (fd < 0 || fd >= FILES || !ours(path) || fstat(fd, &s)) return fd;
    inode_of[fd] = s.st_ino;
    is_directory[fd] = S_ISDIR(s.st_mode);
    if (!existed) note('C', path, 0, s.st_ino, 0, 0, 0);
    else if (flags & O_TRUNC) note('T', 0, 0, s.st_ino, 0, 0, 0);
    return fd;
}

#define OPEN(name) \
    int name(const char *path, int flags, ...) { \
        REAL(int, #name, const char *, int, ...); \
        va_list list; va_start(list, flags); int mode = va_arg(list, int); va_end(list); \
        if (!ours(path)) return real(path, flags, mode); \
        pthread_mutex_lock(&lock); \
        int fd = -1, existed = !access(path, F_OK); \
        fd = opened(real(path, flags, mode), path, flags, existed); \
        pthread_mutex_unlock(&lock); return fd; }
OPEN(open)
OPEN(open64)

#define OPENAT(name) \
    int name(int folder, const char *path, int flags, ...) { \
        REAL(int, #name, int, const char *, int, ...); \
        va_list list; va_start(list, flags); int mode = va_arg(list, int); va_end(list); \
        if (!ours(path)) return real(folder, path, flags, mode); \
        pthread_mutex_lock(&lock); \
        int existed = !access(path, F_OK); \
        int fd = opened(real(folder, path, flags, mode), path, flags, existed); \
        pthread_mutex_unlock(&lock); return fd; }
OPENAT(openat)
OPENAT(openat64)

int close(int fd) {
    REAL(int, "close", int);
    if (held(fd)) { pthread_mutex_lock(&lock); inode_of[fd] = 0; pthread_mutex_unlock(&lock); }
    return real(fd);
}

ssize_t write(int fd, const void *data, size_t length) {
    REAL(ssize_t, "write", int, const void *, size_t);
    uint64_t inode = held(fd);
    if (!inode && (out < 0 || fd != 1)) return real(fd, data, length);
    pthread_mutex_lock(&lock);
    ssize_t done = real(fd, data, length);
    if (done > 0 && inode) note('W', 0, 0, inode, lseek(fd, 0, SEEK_CUR) - done, data, done);
    if (done > 0 && !inode) note('A', 0, 0, 0, 0, data, done);
    pthread_mutex_unlock(&lock);
    return done;
}

#define PWRITE(name) \
    ssize_t name(int fd, const void *data, size_t length, off_t offset) { \
        REAL(ssize_t, #name, int, const void *, size_t, off_t); \
        uint64_t inode = held(fd); \
        if (!inode) return real(fd, data, length, offset); \
        pthread_mutex_lock(&lock); \
        ssize_t done = real(fd, data, length, offset); \
        if (done > 0) note('W', 0, 0, inode, offset, data, done); \
        pthread_mutex_unlock(&lock); return done; }
PWRITE(pwrite)
PWRITE(pwrite64)

#define TRUNCATE(name) \
    int name(int fd, off_t length) { \
        REAL(int, #name, int, off_t); \
        uint64_t inode = held(fd); \
        if (!inode) return real(fd, length); \
        pthread_mutex_lock(&lock); \
        int failed = real(fd, length); \
        if (!failed) note('T', 0, 0, inode, length, 0, 0); \
        pthread_mutex_unlock(&lock); return failed; }
TRUNCATE(ftruncate)
TRUNCATE(ftruncate64)

#define SYNC(name) \
    int name(int fd) { \
        REAL(int, #name, int); \
        uint64_t inode = held(fd); \
        if (!inode) return real(fd); \
        usleep(300); /* a disk takes its time: who does not wait for it is to be found out */ \
        pthread_mutex_lock(&lock); \
        char link[64], path[4096] = ""; \
        if (is_directory[fd]) { \
            strcpy(link, "/proc/self/fd/"); \
            int digits = 0, n = fd; char text[16]; \
            do text[digits++] = '0' + n % 10; while (n /= 10); \
            size_t end = strlen(link); while (digits) link[end++] = text[--digits]; link[end] = 0; \
            ssize_t size = readlink(link, path, sizeof path - 1); \
            path[size < 0 ? 0 : size] = 0; \
            note('Y', path, 0, inode, 0, 0, 0); \
        } else note('S', 0, 0, inode, 0, 0, 0); \
        pthread_mutex_unlock(&lock); return 0; }
SYNC(fsync)
SYNC(fdatasync)

#define TWO(name, kind) \
    int name(const char *from, const char *to) { \
        REAL(int, #name, const char *, const char *); \
        if (!ours(to)) return real(from, to); \
        pthread_mutex_lock(&lock); \
        int failed = real(from, to); \
        if (!failed) note(kind, from, to, 0, 0, 0, 0); \
        pthread_mutex_unlock(&lock); return failed; }
TWO(rename, 'R')
TWO(link, 'L')

int unlink(const char *path) {
    REAL(int, "unlink", const char *);
    if (!ours(path)) return real(path);
    pthread_mutex_lock(&lock);
    int failed = real(path);
    if (!failed) note('U', path, 0, 0, 0, 0, 0);
    pthread_mutex_unlock(&lock);
    return failed;
}

int mkdir(const char *path, mode_t mode) {
    REAL(int, "mkdir", const char *, mode_t);
    if (!ours(path)) return real(path, mode);
    pthread_mutex_lock(&lock);
    int failed = real(path, mode);
    if (!failed) note('D', path, 0, 0, 0, 0, 0);
    pthread_mutex_unlock(&lock);
    return failed;
}
