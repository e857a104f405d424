/* SPDX-License-Identifier: Apache-2.0 */
/* cache.c: what took long to find, kept on disk. See cache.h.
 *
 * A file is a head, the key and the contents; the head has the sizes of both and a
 * checksum over all that follows it. The file's name is a hash of the key; two keys of
 * one hash push each other out. A file is written under another name, closed and then
 * renamed, so that nobody reads half of it; after a crash of the machine its checksum
 * shows what is missing, so that nothing waits for the disk. */
#include "config.h"
#include "kernels/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

static const char magic[8] = "etkept1";

struct head {
    char magic[8];
    uint64_t key, contents; /* bytes */
    uint64_t checksum;      /* XXH3 of key and contents */
};

/* More than this is not one of ours. */
#define MOST_BYTES ((off_t)256 << 20)

/* False where no folder is known. */
static bool
folder(char out[PATH_MAX])
{
    const char *own = getenv("ETUDE_CACHE_DIR"), *xdg = getenv("XDG_CACHE_HOME"),
               *home = getenv("HOME");
    int n = -1;
    if (own && own[0])
        n = snprintf(out, PATH_MAX, "%s/kernels", own);
    else if (xdg && xdg[0] == '/')
        n = snprintf(out, PATH_MAX, "%s/etude/kernels", xdg);
    else if (home && home[0] == '/')
        n = snprintf(out, PATH_MAX, "%s/.cache/etude/kernels", home);
    return n >= 0 && n < PATH_MAX;
}

/* Never the home directory itself, nor what it lies in: one that is not there is a
 * mistake of whoever set it, as core/base/folders.c has it for all others. */
static bool
make_folder(char *path)
{
    const char *home = getenv("HOME");
    size_t n = home ? strlen(home) : 0;
    char *from = path + 1;
    while (n > 1 && home[n - 1] == '/')
        n--;
    if (n > 1 && strncmp(path, home, n) == 0 && path[n] == '/')
        from = path + n + 1;
    for (char *slash = strchr(from, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0777); /* one that exists is as good */
        *slash = '/';
    }
    return mkdir(path, 0777) == 0 || errno == EEXIST;
}

/* NAME in FOLDER; false where that is too long for a path. */
static bool
join(char out[PATH_MAX], const char *folder, const char *name)
{
    int n = snprintf(out, PATH_MAX, "%s/%s", folder, name);
    return n >= 0 && n < PATH_MAX;
}

static void
file_name(char out[64], const char *kind, const char *key)
{
    snprintf(out, 64, "%.40s-%016llx", kind,
             (unsigned long long)XXH3_64bits(key, strlen(key)));
}

static bool
read_all(int fd, void *out, size_t size)
{
    for (size_t at = 0; at < size;) {
        ssize_t n = read(fd, (char *)out + at, size - at);
        if (n <= 0 && !(n < 0 && errno == EINTR))
            return false;
        at += n > 0 ? (size_t)n : 0;
    }
    return true;
}

static bool
write_all(int fd, const void *bytes, size_t size)
{
    for (size_t at = 0; at < size;) {
        ssize_t n = write(fd, (const char *)bytes + at, size - at);
        if (n < 0 && errno != EINTR)
            return false;
        at += n > 0 ? (size_t)n : 0;
    }
    return true;
}

/* The whole of an open file, malloc'ed; NULL where it is none of ours. */
static char *
read_file(int fd, size_t *size)
{
    struct stat st;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size > MOST_BYTES ||
        st.st_size < (off_t)sizeof(struct head))
        return NULL;
    *size = (size_t)st.st_size;
    char *all = malloc(*size);
    if (all && !read_all(fd, all, *size)) {
        free(all);
        return NULL;
    }
    return all;
}

/* Is this file of SIZE bytes whole, and of KEY? */
static bool
is_whole(const char *all, size_t size, const char *key, struct head *head)
{
    const char *rest = all + sizeof *head;
    size_t left = size - sizeof *head;
    memcpy(head, all, sizeof *head);
    return memcmp(head->magic, magic, sizeof magic) == 0 && head->key == strlen(key) &&
           head->key < left && head->contents == left - head->key &&
           head->checksum == XXH3_64bits(rest, left) &&
           memcmp(rest, key, head->key) == 0;
}

bool
etk_cache_read(const char *kind, const char *key, void **bytes, size_t *size)
{
    char dir[PATH_MAX], path[PATH_MAX], name[64];
    file_name(name, kind, key);
    if (!folder(dir) || !join(path, dir, name))
        return false;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    size_t all_size = 0;
    char *all = read_file(fd, &all_size);
    close(fd);
    struct head head;
    if (!all || !is_whole(all, all_size, key, &head)) {
        free(all);
        return false;
    }
    memmove(all, all + sizeof head + head.key, head.contents);
    *bytes = all;
    *size = head.contents;
    return true;
}

static bool
write_entry(int fd, const char *key, const void *bytes, size_t size)
{
    struct head head = {.key = strlen(key), .contents = size};
    memcpy(head.magic, magic, sizeof magic);
    XXH3_state_t state;
    XXH3_64bits_reset(&state);
    XXH3_64bits_update(&state, key, head.key);
    XXH3_64bits_update(&state, bytes, size);
    head.checksum = XXH3_64bits_digest(&state);
    return write_all(fd, &head, sizeof head) && write_all(fd, key, head.key) &&
           write_all(fd, bytes, size);
}

void
etk_cache_write(const char *kind, const char *key, const void *bytes, size_t size)
{
    char dir[PATH_MAX], path[PATH_MAX], temporary[PATH_MAX], name[64];
    file_name(name, kind, key);
    if (!folder(dir) || !join(path, dir, name) ||
        !join(temporary, dir, ".new-XXXXXX") || !make_folder(dir))
        return;
    int fd = mkostemp(temporary, O_CLOEXEC);
    if (fd < 0)
        return;
    bool written = write_entry(fd, key, bytes, size);
    if (close(fd) != 0 || !written || rename(temporary, path) != 0)
        unlink(temporary);
}
