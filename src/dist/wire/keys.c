/* SPDX-License-Identifier: Apache-2.0 */
/* keys.c: see keys.h. */
#include "config.h"

#include "dist/wire/keys.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zmq.h>

#include "core/base/folders.h"
#include "core/base/seams.h"
#include "dist/wire/errors.h"

enum { KEY_BYTES = 32, FILE_BYTES = 1024 };

bool
etd_key_is(const char *text)
{
    uint8_t raw[KEY_BYTES];
    return strlen(text) == ETD_KEY_TEXT - 1 && zmq_z85_decode(raw, text) != NULL;
}

const char *
etd_key_fingerprint(const char *public_key, char *buf)
{
    unsigned char raw[KEY_BYTES] = {0}, hash[crypto_hash_sha256_BYTES];
    int n = snprintf(buf, ETD_FINGERPRINT, "SHA256:");
    (void)zmq_z85_decode(raw, public_key);
    crypto_hash_sha256(hash, raw, sizeof raw);
    sodium_bin2base64(buf + n, (size_t)(ETD_FINGERPRINT - n), hash, sizeof hash,
                      sodium_base64_VARIANT_ORIGINAL_NO_PADDING);
    return buf;
}

et_status
etd_keys_draw(struct et_ctx *cx, struct etd_keys *out)
{
    /* One of 85 would begin with '-', and be an option on a command line; others with
     * what is a shell's: those are drawn again. */
    bool drawn;
    do
        drawn = zmq_curve_keypair(out->public_key, out->secret) == 0;
    while (drawn && !isalnum((unsigned char)out->public_key[0]));
    if (drawn)
        return ET_OK;
    return ETD_FAIL(cx, ET_ENOTSUP, KEYS, "no keys can be made: %s",
                    zmq_strerror(zmq_errno()));
}

/* ---- files ---- */

/* All of a small file of ours: at most ROOM - 1 bytes, and a zero behind them. SECRET:
 * nobody else may read it. */
static et_status
read_own(struct et_ctx *cx, const char *path, bool secret, char *text, size_t room,
         size_t *n)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT)
        return ETD_FAIL(cx, ET_ENOENT, KEYS, "there is no %s", path);
    if (fd < 0 || fstat(fd, &st) != 0) {
        int why = errno;
        if (fd >= 0)
            close(fd);
        return ETD_FAIL(cx, ET_EIO, KEYS, "cannot read %s: %s", path, strerror(why));
    }
    ssize_t got = read(fd, text, room);
    close(fd);
    if (!S_ISREG(st.st_mode))
        return ETD_FAIL(cx, ET_EIO, KEYS, "%s is no regular file", path);
    if (st.st_uid != geteuid())
        return ETD_FAIL(cx, ET_EIO, KEYS, "%s belongs to uid %ld, not to you", path,
                        (long)st.st_uid);
    if (secret && st.st_mode & 077)
        return ETD_FAIL(cx, ET_EIO, KEYS, "%s: mode %04o, must be 0600", path,
                        (unsigned)st.st_mode & 07777);
    if (got < 0 || (size_t)got >= room)
        return ETD_FAIL(cx, ET_EFORMAT, KEYS, "%s has more than %zu bytes", path,
                        room - 1);
    text[got] = '\0';
    *n = (size_t)got;
    return ET_OK;
}

et_status
etd_keys_write(struct et_ctx *cx, const char *path, const struct etd_keys *keys)
{
    char text[FILE_BYTES], fingerprint[ETD_FINGERPRINT];
    int n = snprintf(text, sizeof text,
                     "# etude's key of this user: keep it secret. %s\n"
                     "public %s\nsecret %s\n",
                     etd_key_fingerprint(keys->public_key, fingerprint),
                     keys->public_key, keys->secret);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return ETD_FAIL(
            cx, errno == EEXIST ? ET_ECANCELED : ET_EIO, KEYS,
            errno == EEXIST ? "%s is there already: %s" : "cannot make %s: %s", path,
            errno == EEXIST ? "others may know its public key" : strerror(errno));
    et_status status = eti_write_all(cx, fd, path, text, (size_t)n);
    if (status == ET_OK)
        status = eti_sync(cx, fd, path);
    close(fd);
    sodium_memzero(text, sizeof text);
    if (status != ET_OK)
        (void)unlink(path);
    return status;
}

/* The key behind WORD at the beginning of a line. */
static bool
find_key(const char *text, const char *word, char key[ETD_KEY_TEXT])
{
    size_t n = strlen(word);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, word, n) != 0 || line[n] != ' ')
            continue;
        size_t length = strcspn(line + n + 1, "\n");
        if (length != ETD_KEY_TEXT - 1)
            return false;
        memcpy(key, line + n + 1, length);
        key[length] = '\0';
        return etd_key_is(key);
    }
    return false;
}

et_status
etd_keys_read(struct et_ctx *cx, const char *path, struct etd_keys *out)
{
    char text[FILE_BYTES], right[ETD_KEY_TEXT];
    size_t n;
    *out = (struct etd_keys){0};
    et_status status = read_own(cx, path, true, text, sizeof text, &n);
    if (status == ET_ENOENT)
        et_hint(cx, "etude worker keygen makes it");
    ET_TRY(status);
    bool found = find_key(text, "public", out->public_key) &&
                 find_key(text, "secret", out->secret);
    sodium_memzero(text, sizeof text);
    if (!found)
        return ETD_FAIL(cx, ET_EFORMAT, KEYS, "%s lacks a public or a secret key",
                        path);
    if (zmq_curve_public(right, out->secret) == 0 &&
        strcmp(right, out->public_key) == 0)
        return ET_OK;
    return ETD_FAIL(cx, ET_EFORMAT, KEYS, "%s: its two keys are no pair", path);
}

/* Replaces PATH, or makes it: 0600. */
static et_status
replace_own(struct et_ctx *cx, const char *path, const char *text, size_t n)
{
    int dir;
    ET_TRY(eti_open_parent(cx, path, &dir));
    et_status status = eti_replace_at(cx, dir, strrchr(path, '/') + 1, text, n);
    eti_close(cx, dir);
    return status;
}

/* Only one process changes a list at a time: others wait. */
static et_status
lock_lists(struct et_ctx *cx, const char *path, int *dir)
{
    et_status status = eti_lock_parent(cx, path, dir);
    if (status == ET_ECANCELED)
        status =
            ETD_FAIL(cx, ET_EIO, TAKEN, "%s: another process is changing it", path);
    return status;
}

/* The N bytes of TEXT without the lines that are OF WHOM, and each with its end, to
 * OUT. Returns their bytes: N and one at most. */
static size_t
copy_others(const char *text, size_t n, bool (*of)(const char *line, const char *whom),
            const char *whom, char *out)
{
    size_t used = 0;
    for (const char *at = text; at < text + n;) {
        size_t length = strcspn(at, "\n");
        bool ends = at + length < text + n;
        if (!of(at, whom)) {
            memcpy(out + used, at, length);
            out[used + length] = '\n';
            used += length + 1;
        }
        at += length + ends;
    }
    return used;
}

/* ---- authorized_keys ---- */

/* Seconds at which the day "YYYY-MM-DD" is over; 0: it is no day. */
static double
end_of_day(const char *text)
{
    struct tm day = {0};
    const char *end = strptime(text, "%Y-%m-%d", &day);
    struct tm again;
    if (!end || *end || strlen(text) != 10)
        return 0;
    int mday = day.tm_mday; /* timegm makes the 30th of February a day of March */
    time_t t = timegm(&day);
    if (t <= 0 || !gmtime_r(&t, &again) || again.tm_mday != mday)
        return 0;
    return (double)t + 24 * 3600;
}

/* NULL: the line is right. */
static const char *
parse_line(char *line, struct etd_authorized *out, char *why, size_t size)
{
    char *rest = NULL;
    const char *role = strtok_r(line, " \t", &rest);
    const char *key = strtok_r(NULL, " \t", &rest);
    *out = (struct etd_authorized){0};
    out->is_operator = strcmp(role, "operator") == 0;
    if (!out->is_operator && strcmp(role, "viewer") != 0)
        return "it begins with neither viewer nor operator";
    if (!key)
        return "it has no key";
    if (strlen(key) != ETD_KEY_TEXT - 1) {
        snprintf(why, size, "key is %zu characters, expected %d", strlen(key),
                 ETD_KEY_TEXT - 1);
        return why;
    }
    if (!etd_key_is(key))
        return "the key is not Z85";
    memcpy(out->key, key, ETD_KEY_TEXT);
    for (char *word; (word = strtok_r(NULL, " \t", &rest));) {
        if (strncmp(word, "until=", 6) == 0) {
            out->until = end_of_day(word + 6);
            if (out->until == 0)
                return "until= is no day such as 2027-01-31";
            continue;
        }
        size_t n = strlen(out->comment);
        snprintf(out->comment + n, sizeof out->comment - n, n ? " %s" : "%s", word);
    }
    return out->comment[0] ? NULL : "it has no comment that says whose key it is";
}

/* From a # on that begins a word: keys have such characters too. No key begins so, as
 * 84 * 85^4 is more than 32 bits. */
static void
cut_comment(char *line)
{
    line[strcspn(line, "\r")] = '\0';
    for (char *at = strchr(line, '#'); at; at = strchr(at + 1, '#'))
        if (at == line || at[-1] == ' ' || at[-1] == '\t') {
            *at = '\0';
            return;
        }
}

int
etd_authorized_parse(const char *bytes, size_t n, struct etd_authorized_list *out,
                     char *why, size_t size)
{
    int number = 0;
    out->n = 0;
    for (const char *at = bytes, *end = bytes + n; at < end;) {
        char line[256];
        struct etd_authorized one;
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t length = stop ? (size_t)(stop - at) : (size_t)(end - at);
        const char *wrong = NULL;
        number++;
        if (length >= sizeof line || memchr(at, '\0', length)) {
            wrong = "it is no line of text, or longer than 255 bytes";
        } else {
            memcpy(line, at, length);
            line[length] = '\0';
            cut_comment(line);
            if (line[strspn(line, " \t")])
                wrong = parse_line(line, &one, why, size);
            else
                one.key[0] = '\0';
        }
        if (!wrong && one.key[0] && out->n == ETD_KEYS_MOST)
            wrong = "more than 256 keys";
        if (wrong) {
            if (wrong != why)
                snprintf(why, size, "%s", wrong);
            out->n = 0;
            return number;
        }
        if (one.key[0])
            out->key[out->n++] = one;
        at += length + 1;
    }
    return 0;
}

et_status
etd_authorized_read(struct et_ctx *cx, const char *path,
                    struct etd_authorized_list *out)
{
    void *block;
    size_t n;
    char why[128] = "";
    out->n = 0;
    ET_TRY(et_alloc(cx, ETD_KEYS_BYTES + 1, &block));
    et_status status = read_own(cx, path, true, block, ETD_KEYS_BYTES + 1, &n);
    if (status == ET_ENOENT)
        et_hint(cx,
                "a line in it lets a key in: viewer KEY NAME, or operator KEY NAME, "
                "with what 'etude worker key' shows there");
    int line =
        status == ET_OK ? etd_authorized_parse(block, n, out, why, sizeof why) : 0;
    et_free(cx, block);
    if (line > 0)
        status = ETD_FAIL(cx, ET_EFORMAT, KEYS, "%s:%d: %s", path, line, why);
    return status;
}

/* Is KEY the second word of LINE? */
static bool
is_line_of(const char *line, const char *key)
{
    line += strspn(line, " \t");
    size_t role = strcspn(line, " \t\n");
    if (strncmp(line, "viewer", role) != 0 && strncmp(line, "operator", role) != 0)
        return false;
    line += role + strspn(line + role, " \t");
    return strcspn(line, " \t\r\n") == ETD_KEY_TEXT - 1 &&
           memcmp(line, key, ETD_KEY_TEXT - 1) == 0;
}

/* A list for workers must be right from end to end: a worker lets nobody in
 * otherwise. */
static et_status
check_new(struct et_ctx *cx, const char *path, const char *text, size_t n,
          struct etd_authorized_list *list)
{
    char why[128] = "";
    int line = etd_authorized_parse(text, n, list, why, sizeof why);
    if (line > 0)
        return ETD_FAIL(cx, ET_EFORMAT, KEYS, "%s would be wrong in line %d: %s", path,
                        line, why);
    if (n > ETD_KEYS_BYTES)
        return ETD_FAIL(cx, ET_EFORMAT, KEYS, "%s would have %zu bytes, more than %d",
                        path, n, ETD_KEYS_BYTES);
    return ET_OK;
}

static et_status
allow_locked(struct et_ctx *cx, const char *path, const char *key, bool is_operator,
             const char *comment, const char **had)
{
    /* The list, and the file before and after. */
    struct room {
        struct etd_authorized_list list;
        char text[ETD_KEYS_BYTES + 1], out[ETD_KEYS_BYTES + 512];
    } * room;
    void *block;
    size_t n = 0;
    *had = "";
    ET_TRY(et_alloc(cx, sizeof *room, &block));
    room = block;
    et_status status = etd_authorized_read(cx, path, &room->list);
    for (int i = 0; i < room->list.n; i++)
        if (strcmp(room->list.key[i].key, key) == 0)
            *had = room->list.key[i].is_operator ? "operator" : "viewer";
    if (status == ET_OK)
        status = read_own(cx, path, true, room->text, sizeof room->text, &n);
    if (status == ET_ENOENT) {
        et_error_clear(cx);
        status = ET_OK;
        n = 0;
    }
    size_t used = copy_others(room->text, n, is_line_of, key, room->out);
    used += (size_t)snprintf(room->out + used, 512, "%s %s %.*s\n",
                             is_operator ? "operator" : "viewer", key, ETD_COMMENT - 1,
                             comment);
    if (status == ET_OK)
        status = check_new(cx, path, room->out, used, &room->list);
    if (status == ET_OK)
        status = replace_own(cx, path, room->out, used);
    et_free(cx, block);
    return status;
}

et_status
etd_authorized_allow(struct et_ctx *cx, const char *path, const char *key,
                     bool is_operator, const char *comment, const char **had)
{
    int lock;
    *had = "";
    ET_TRY(lock_lists(cx, path, &lock));
    et_status status = allow_locked(cx, path, key, is_operator, comment, had);
    close(lock);
    return status;
}

const struct etd_authorized *
etd_authorized_find(const struct etd_authorized_list *list, const char *key, double now)
{
    for (int i = 0; i < list->n; i++) {
        const struct etd_authorized *a = &list->key[i];
        if (strcmp(a->key, key) == 0 && (a->until == 0 || now < a->until))
            return a;
    }
    return NULL;
}

/* ---- workers.yaml ---- */

/* The value of "KEY: " in a flow map, with or without quotes, into OUT; false: too
 * long. */
static bool
take_value(const char *map, const char *key, char *out, size_t size)
{
    char pattern[32];
    snprintf(pattern, sizeof pattern, "%s: ", key);
    const char *at = strstr(map, pattern);
    out[0] = '\0';
    if (!at)
        return true;
    at += strlen(pattern);
    bool quoted = *at == '"';
    at += quoted;
    size_t n = strcspn(at, quoted ? "\"" : ",}");
    if (n >= size)
        return false;
    memcpy(out, at, n);
    out[n] = '\0';
    return true;
}

/* 0: the line is about no worker; -1: it is wrong. */
static int
parse_worker(const char *line, struct etd_worker *out)
{
    size_t n = strcspn(line, ":");
    const char *map = line + n + 1;
    *out = (struct etd_worker){0};
    if (line[0] == '#' || line[strspn(line, " \t")] == '\0' || strcmp(line, "---") == 0)
        return 0;
    if (n == 0 || n >= sizeof out->name || line[n] != ':' ||
        strncmp(map, " {", 2) != 0 || line[strlen(line) - 1] != '}')
        return -1;
    memcpy(out->name, line, n);
    bool fits = take_value(map, "address", out->address, sizeof out->address) &&
                take_value(map, "key", out->key, sizeof out->key) &&
                take_value(map, "since", out->since, sizeof out->since);
    bool tcp = strncmp(out->address, "tcp://", 6) == 0;
    bool right =
        fits && (tcp ? etd_key_is(out->key)
                     : strncmp(out->address, "ssh://", 6) == 0 && !out->key[0]);
    return right ? 1 : -1;
}

int
etd_workers_parse(const char *bytes, size_t n, struct etd_worker_list *out, char *why,
                  size_t size)
{
    int number = 0;
    out->n = 0;
    for (const char *at = bytes, *end = bytes + n; at < end;) {
        char line[512];
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t length = stop ? (size_t)(stop - at) : (size_t)(end - at);
        int found = -1;
        number++;
        if (length < sizeof line && !memchr(at, '\0', length) &&
            out->n < ETD_WORKERS_MOST) {
            memcpy(line, at, length);
            line[length] = '\0';
            found = parse_worker(line, &out->worker[out->n]);
        }
        if (found < 0) {
            snprintf(why, size,
                     out->n == ETD_WORKERS_MOST
                         ? "more than 256 workers"
                         : "expected NAME: {address: tcp://HOST:PORT, key: \"40 "
                           "characters\"}");
            out->n = 0;
            return number;
        }
        out->n += found;
        at += length + 1;
    }
    return 0;
}

et_status
etd_workers_read(struct et_ctx *cx, const char *path, struct etd_worker_list *out)
{
    void *block;
    size_t n = 0;
    char why[128];
    out->n = 0;
    ET_TRY(et_alloc(cx, ETD_KEYS_BYTES + 1, &block));
    et_status status = read_own(cx, path, false, block, ETD_KEYS_BYTES + 1, &n);
    int line = status == ET_OK ? etd_workers_parse(block, n, out, why, sizeof why) : 0;
    et_free(cx, block);
    if (status == ET_ENOENT) {
        et_error_clear(cx);
        return ET_OK;
    }
    if (line > 0)
        status = ETD_FAIL(cx, ET_EFORMAT, WORKER, "%s:%d: %s", path, line, why);
    return status;
}

/* Is LINE that of the worker NAME? */
static bool
is_line_about(const char *line, const char *name)
{
    size_t n = strlen(name);
    return strncmp(line, name, n) == 0 && line[n] == ':';
}

/* Who reads the list must find it right from end to end. */
static et_status
check_workers(struct et_ctx *cx, const char *path, const char *text, size_t n)
{
    void *block;
    char why[128];
    ET_TRY(et_alloc(cx, sizeof(struct etd_worker_list), &block));
    int line = etd_workers_parse(text, n, block, why, sizeof why);
    et_free(cx, block);
    if (line > 0)
        return ETD_FAIL(cx, ET_EFORMAT, WORKER, "%s would be wrong in line %d: %s",
                        path, line, why);
    if (n > ETD_KEYS_BYTES)
        return ETD_FAIL(cx, ET_EFORMAT, WORKER, "%s would have %zu bytes, more than %d",
                        path, n, ETD_KEYS_BYTES);
    return ET_OK;
}

static et_status
write_locked(struct et_ctx *cx, const char *path, const char *name,
             const struct etd_worker *w)
{
    void *block, *copy;
    size_t n = 0, used = 0;
    ET_TRY(et_alloc(cx, ETD_KEYS_BYTES + 1, &block));
    if (et_alloc(cx, ETD_KEYS_BYTES + 1024, &copy) != ET_OK) {
        et_free(cx, block);
        return ET_ENOMEM;
    }
    char *text = block, *out = copy;
    et_status status = read_own(cx, path, false, text, ETD_KEYS_BYTES + 1, &n);
    if (status == ET_ENOENT) {
        et_error_clear(cx);
        status = ET_OK;
    }
    if (status == ET_OK)
        used = copy_others(text, n, is_line_about, name, out);
    if (w && w->key[0])
        used += (size_t)snprintf(out + used, 1024,
                                 "%s: {address: \"%s\", key: \"%s\", since: %s}\n",
                                 name, w->address, w->key, w->since);
    else if (w)
        used += (size_t)snprintf(out + used, 1024, "%s: {address: \"%s\", since: %s}\n",
                                 name, w->address, w->since);
    if (status == ET_OK)
        status = check_workers(cx, path, out, used);
    if (status == ET_OK)
        status = replace_own(cx, path, out, used);
    et_free(cx, block);
    et_free(cx, copy);
    return status;
}

et_status
etd_workers_write(struct et_ctx *cx, const char *path, const char *name,
                  const struct etd_worker *w)
{
    int lock;
    ET_TRY(lock_lists(cx, path, &lock));
    et_status status = write_locked(cx, path, name, w);
    close(lock);
    return status;
}

const struct etd_worker *
etd_workers_find(const struct etd_worker_list *list, const char *name_or_address)
{
    for (int i = 0; i < list->n; i++)
        if (strcmp(list->worker[i].name, name_or_address) == 0 ||
            strcmp(list->worker[i].address, name_or_address) == 0)
            return &list->worker[i];
    return NULL;
}
