/* SPDX-License-Identifier: Apache-2.0 */
/* What device modules keep on disk: found again by its key, and never in part; and the
 * faster of two ways, which is timed once. */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernels/cache.h"
#include "kernels/cpu/choice.h"
#include "t/tap.h"

static char top[] = "/tmp/etude-kept-XXXXXX";

/* Is WANT what is kept for KEY? NULL: is nothing? */
static bool
kept(const char *kind, const char *key, const char *want)
{
    void *bytes = NULL;
    size_t size = 0;
    if (!etk_cache_read(kind, key, &bytes, &size))
        return want == NULL;
    bool same = want && size == strlen(want) && memcmp(bytes, want, size) == 0;
    free(bytes);
    return same;
}

/* Files in DIR whose names begin with PREFIX; the last one's path. */
static int
find(const char *dir, const char *prefix, char path[PATH_MAX])
{
    DIR *d = opendir(dir);
    int n = 0;
    for (struct dirent *e; d && (e = readdir(d));)
        if (strncmp(e->d_name, prefix, strlen(prefix)) == 0 &&
            strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) {
            snprintf(path, PATH_MAX, "%.2000s/%s", dir, e->d_name);
            n++;
        }
    if (d)
        closedir(d);
    return n;
}

static void
set_byte(const char *path, off_t at, char byte)
{
    int fd = open(path, O_WRONLY);
    if (fd < 0 || pwrite(fd, &byte, 1, at) != 1)
        bail("cannot write %s", path);
    close(fd);
}

static char
get_byte(const char *path, off_t at)
{
    char byte = 0;
    int fd = open(path, O_RDONLY);
    if (fd < 0 || pread(fd, &byte, 1, at) != 1)
        bail("cannot read %s", path);
    close(fd);
    return byte;
}

/* Every byte turned over, every length cut: nothing is answered from what is left. */
static void
test_damage(const char *dir)
{
    char path[PATH_MAX];
    struct stat st;
    is_int(find(dir, "fate-", path), 1, "an entry is one file");
    if (stat(path, &st) != 0)
        bail("cannot find %s", path);
    int seen = 0;
    for (off_t i = 0; i < st.st_size; i++) {
        char byte = get_byte(path, i);
        set_byte(path, i, (char)(byte ^ 0x10));
        seen += !kept("fate", "key", NULL);
        set_byte(path, i, byte);
    }
    is_int(seen, 0, "no entry is read with a bit of it turned over");
    ok(kept("fate", "key", "contents"), "and with the bit turned back it is read");
    for (off_t size = st.st_size - 1; size >= 0; size--) {
        if (truncate(path, size) != 0)
            bail("cannot cut %s", path);
        seen += !kept("fate", "key", NULL);
    }
    is_int(seen, 0, "no entry is read that was cut short");
    etk_cache_write("fate", "key", "contents", 8);
    ok(kept("fate", "key", "contents"), "a damaged entry is written anew");
    is_int(find(dir, ".new", path), 0, "nothing of another name stays behind");
}

static void
test_places(void)
{
    char path[PATH_MAX], want[PATH_MAX];
    setenv("XDG_CACHE_HOME", top, 1);
    snprintf(want, sizeof want, "%s/nobody", top);
    setenv("HOME", want, 1);
    unsetenv("ETUDE_CACHE_DIR");
    etk_cache_write("place", "key", "xdg", 3);
    snprintf(want, sizeof want, "%s/etude/kernels", top);
    is_int(find(want, "place-", path), 1, "entries lie under $XDG_CACHE_HOME/etude");
    unsetenv("XDG_CACHE_HOME");
    setenv("HOME", top, 1);
    etk_cache_write("place", "key", "home", 4);
    snprintf(want, sizeof want, "%s/.cache/etude/kernels", top);
    is_int(find(want, "place-", path), 1, "else under ~/.cache/etude");
    setenv("XDG_CACHE_HOME", "here", 1);
    ok(kept("place", "key", "home"), "where that is no absolute path, as well");
    unsetenv("XDG_CACHE_HOME");
    snprintf(want, sizeof want, "%s/nobody", top);
    setenv("HOME", want, 1);
    etk_cache_write("place", "key", "gone", 4);
    ok(access(want, F_OK) != 0, "a home that is not there is not made for them");
    unsetenv("HOME");
    etk_cache_write("place", "key", "none", 4);
    ok(kept("place", "key", NULL), "and with no folder known nothing is kept");
    snprintf(want, sizeof want, "%s/own", top);
    setenv("ETUDE_CACHE_DIR", want, 1);
}

/* ---- the faster of two ways ---- */

static double seconds[2]; /* that each takes */
static int measured;

static double
take(void *data, bool second)
{
    measured++;
    return data == &measured ? seconds[second] : -1;
}

static bool
choose(const char *key, double first, double second)
{
    seconds[0] = first;
    seconds[1] = second;
    measured = 0;
    return etk_is_second_faster(key, take, &measured);
}

static void
test_choices(void)
{
    ok(choose("a", 2, 1) && measured == 2, "the second way is faster: both are timed");
    ok(choose("a", 1, 2) && measured == 0, "which is kept, and timed no more");
    ok(!choose("b", 1, 2) && measured == 2, "of another key the first way is faster");
    ok(!choose("b", 2, 1) && measured == 0, "which is kept too");
    ok(!choose("c", 1, 1), "of two that are equal the first is taken");
    ok(!choose("d", 1, 0) && choose("d", 2, 1),
       "a second way that does not run is not taken, and nothing is kept");
    ok(!choose("e", 0, 1) && choose("e", 2, 1),
       "nor is one kept where the first does not");
    etk_cache_write("choice", "f", "x", 1);
    ok(choose("f", 2, 1) && measured == 2, "an answer that is none is asked for again");
    etk_cache_write("choice", "g", "yy", 2);
    ok(!choose("g", 1, 2) && measured == 2, "so is one that is too long");
}

int
main(void)
{
    char dir[PATH_MAX], path[PATH_MAX];
    if (!mkdtemp(top))
        bail("cannot make %s", top);
    test_places();
    snprintf(dir, sizeof dir, "%s/own/kernels", top);
    ok(kept("fate", "key", NULL), "nothing is kept at first");
    etk_cache_write("fate", "key", "other", 5);
    etk_cache_write("fate", "key", "contents", 8);
    ok(kept("fate", "key", "contents"), "what was written last is read");
    ok(kept("fate", "keys", NULL) && kept("fat", "key", NULL),
       "and under its key and kind alone");
    test_damage(dir);
    find(dir, "fate-", path);
    etk_cache_write("fate", "another", "contents", 8);
    char other[PATH_MAX] = "";
    if (unlink(path) != 0 || find(dir, "fate-", other) != 1 || rename(other, path) != 0)
        bail("cannot move %s", other);
    ok(kept("fate", "key", NULL),
       "an entry of another key is not taken for this one's");
    etk_cache_write("fate", "yek", "contents", 8);
    etk_cache_write("fate", "key", "contents", 8);
    int both = find(dir, "fate-", path);
    unlink(path);
    if (both != 2 || find(dir, "fate-", other) != 1)
        bail("there are not two entries in %s", dir);
    /* Which of the two is gone nobody knows: the other takes its name. */
    bool first = kept("fate", "key", NULL);
    if (rename(other, path) != 0)
        bail("cannot move %s", other);
    ok(kept("fate", first ? "key" : "yek", NULL),
       "nor is one whose key is as long, with the same contents");
    test_choices();
    snprintf(path, sizeof path, "rm -rf %s", top);
    ok(system(path) == 0, "the test leaves nothing");
    return done();
}
