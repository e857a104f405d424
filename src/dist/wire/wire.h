/* SPDX-License-Identifier: Apache-2.0 */
/* wire.h: the frames in which hub, viewers, worker and supervisor speak (RELIABILITY.md
 * 5.3). etude-events(7) says what each kind means; here is how they are written and
 * read.
 *
 *     frame   [major, minor, kind, run, incarnation, hseq, rank, rseq, t_mono_ns, body]
 *
 * is one msgpack array. kind is text, run the id of the run (16 bytes), body a map with
 * short text keys. hseq is the number of a record in events.log, rank whose it is;
 * rseq, its number among those of its rank, is 0 where nobody has counted; t_mono_ns is
 * the sender's clock that only grows. In a conversation hseq, rank and rseq are 0.
 *
 * A minor version adds keys and kinds: readers skip and count what they do not know. A
 * key never changes its type or meaning. Another major version is refused.
 *
 * Everything here is a function of its arguments and allocates nothing, but for the
 * numbers of a record in several frames. */
#ifndef ETD_WIRE_H
#define ETD_WIRE_H

#include "etude/logger.h"

enum {
    ETD_MAJOR = 1,
    ETD_MINOR = 1,
    ETD_RUN_ID = 16, /* bytes of a run's id */
    ETD_CMD_ID = 16, /* bytes that name a command */
    ETD_DIGEST = 16, /* bytes of a model's digest */

    /* Of one message, by its kind (etd_kind_bytes). */
    ETD_STREAM_BYTES = 64 << 10,
    ETD_CONTROL_BYTES = 4 << 10,
    ETD_CHUNK_BYTES = 256 << 10,
    /* Of what a hub takes in, whatever its kind. */
    ETD_INBOUND_BYTES = 64 << 10,
    ETD_SNAPSHOT_BYTES = 16 << 20,
    ETD_RECORD_BYTES = 48 << 10, /* 64 numbers with the longest names and spans fit */

    ETD_DEPTH = 8,     /* lists and maps in each other, the frame itself included */
    ETD_KEYS = 64,     /* of a map */
    ETD_STRING = 1024, /* bytes of a text */
    ETD_ARRAY = 4096,  /* elements of a list */
    ETD_RECORD_NUMBERS = 6000, /* of a record in several frames: of one in the log */
    ETD_CLIENTS = 64,
    ETD_CREDIT = 256, /* messages, unless a viewer asks for others */

    ETD_TEXT_ROOM = 1025, /* a text with its zero */
};

/* Seconds. */
#define ETD_BEAT         1.0  /* of silence, then a PING */
#define ETD_STALE        3.0  /* of silence, and what is shown is old */
#define ETD_DISCONNECTED 10.0 /* and nobody is there */
#define ETD_HANDSHAKE    5.0  /* from connecting to WELCOME */

/* The kinds of a conversation, behind those of records; most bytes of one. */
#define ETD_TALK_MAP(X)                                                                \
    X(HELLO, ETD_CONTROL_BYTES)                                                        \
    X(WELCOME, ETD_CONTROL_BYTES)                                                      \
    X(REFUSE, ETD_CONTROL_BYTES)                                                       \
    X(SNAP_BEGIN, ETD_CONTROL_BYTES)                                                   \
    X(SNAP_CHUNK, ETD_CHUNK_BYTES)                                                     \
    X(SNAP_END, ETD_CONTROL_BYTES)                                                     \
    X(NACK, ETD_CONTROL_BYTES)                                                         \
    X(HIST, ETD_STREAM_BYTES)                                                          \
    X(PING, ETD_CONTROL_BYTES)                                                         \
    X(PONG, ETD_CONTROL_BYTES)                                                         \
    X(CMD, ETD_CONTROL_BYTES)                                                          \
    X(RECEIVED, ETD_CONTROL_BYTES)                                                     \
    X(APPLIED, ETD_CONTROL_BYTES)                                                      \
    X(REJECTED, ETD_CONTROL_BYTES)                                                     \
    X(EXPIRED, ETD_CONTROL_BYTES)                                                      \
    X(BYE, ETD_CONTROL_BYTES)                                                          \
    X(RUNS, ETD_STREAM_BYTES)                                                          \
    X(START, ETD_CHUNK_BYTES)                                                          \
    X(FACTS, ETD_STREAM_BYTES)                                                         \
    X(MACHINE, ETD_STREAM_BYTES)                                                       \
    X(LOAD, ETD_CHUNK_BYTES)                                                           \
    X(FILE, ETD_CHUNK_BYTES)

enum etd_kind {
    ETD_LAST_RECORD = ET_RECORD_COUNT - 1, /* up to here they are et_record_kind */
#define ETD_TALK_ENUM(code, bytes) ETD_##code,
    ETD_TALK_MAP(ETD_TALK_ENUM)
#undef ETD_TALK_ENUM
        ETD_KIND_COUNT /* of a frame: a kind of a later version */
};
const char *etd_kind_name(enum etd_kind kind); /* "batch", "HELLO" */
size_t etd_kind_bytes(enum etd_kind kind);     /* of a message at most */

/* ---- writing ---- */

struct etd_head {
    enum etd_kind kind;
    unsigned char run[ETD_RUN_ID]; /* zeros: no run is meant yet */
    int64_t incarnation;           /* 0: not known */
    int64_t hseq;
    int rank;
    int64_t rseq, t_mono_ns;
    int major, minor; /* as they were read; ours are written */
};

/* A frame being written into ROOM BYTES, the caller's. */
struct etd_out {
    char *bytes;
    size_t room, used;
    int keys;  /* of the body, still to come */
    bool full; /* something did not fit, or was more than the limits allow */
};
/* Begins a frame with a body of N_KEYS: as many calls below follow. */
void etd_begin(struct etd_out *o, void *bytes, size_t room, const struct etd_head *head,
               int n_keys);
void etd_put_int(struct etd_out *o, const char *key, int64_t value);
void etd_put_double(struct etd_out *o, const char *key, double value);
void etd_put_bool(struct etd_out *o, const char *key, bool value);
/* At most 1 KiB of it, in whole characters. */
void etd_put_text(struct etd_out *o, const char *key, const char *text);
void etd_put_bin(struct etd_out *o, const char *key, const void *bytes, size_t n);
void etd_put_ints(struct etd_out *o, const char *key, const int64_t *value, int n);
void etd_put_doubles(struct etd_out *o, const char *key, const double *value, int n);
void etd_put_texts(struct etd_out *o, const char *key, const char *const *value, int n);
/* A map under KEY: as many calls as it has N_KEYS follow. */
void etd_put_map(struct etd_out *o, const char *key, int n_keys);
/* Bytes of the frame; 0: it did not fit, or is longer than its kind may be. */
size_t etd_end(struct etd_out *o);

/* ---- reading ---- */

/* Borrowed, as everything that is read, from the bytes of the message. */
struct etd_map {
    const unsigned char *at, *end; /* of its first key; of the message */
    int n;                         /* keys */
};
struct etd_frame {
    struct etd_head head;
    struct etd_map body;
};

/* What was wrong with bytes: for BYE{MALFORMED}. */
struct etd_fault {
    size_t at;       /* byte of the message */
    const char *why; /* constant text */
};

/* Reads a message of N BYTES after checking all of it: no count in it is larger than
 * the bytes left, and every limit above is kept. EFORMAT with *FAULT: it is
 * malformed; ENOTSUP: it is of another major version, and the head has its major and
 * minor alone. */
ET_NODISCARD et_status etd_read(const void *bytes, size_t n, struct etd_frame *out,
                                struct etd_fault *fault);

enum etd_type {
    ETD_IS_NIL, /* and what is of no type here: numbers past 2^63, extensions */
    ETD_IS_BOOL,
    ETD_IS_INT,
    ETD_IS_DOUBLE,
    ETD_IS_TEXT,
    ETD_IS_BIN,
    ETD_IS_LIST,
    ETD_IS_MAP,
};
struct etd_value {
    enum etd_type type;
    int64_t i;               /* also of a bool */
    double d;                /* also of an int */
    const char *bytes;       /* of text and bin */
    size_t n;                /* bytes; elements of a list */
    struct etd_map map;      /* of a map */
    const unsigned char *at; /* of a list: its first element */
};
/* The value of KEY; false where the record has no such key. */
bool etd_find(const struct etd_map *m, const char *key, struct etd_value *out);
/* Steps through what is in a map or list: reads what stands at *AT and moves on. */
void etd_next(const unsigned char **at, const unsigned char *end,
              struct etd_value *out);

/* The value of KEY if it is of that type, else OTHERWISE. */
int64_t etd_get_int(const struct etd_map *m, const char *key, int64_t otherwise);
double etd_get_double(const struct etd_map *m, const char *key, double otherwise);
bool etd_get_bool(const struct etd_map *m, const char *key, bool otherwise);
/* Copies a text, cut to SIZE - 1 bytes, into BUF; "" without. Returns BUF. */
char *etd_get_text(const struct etd_map *m, const char *key, char *buf, size_t size);
/* Copies N bytes of a bin that is that long; false without. */
bool etd_get_id(const struct etd_map *m, const char *key, unsigned char *out, size_t n);
/* Up to ROOM numbers of a list; returns how many. */
int etd_get_doubles(const struct etd_map *m, const char *key, double *out, int room);
int etd_get_ints(const struct etd_map *m, const char *key, int64_t *out, int room);

/* The bytes of a run's id, from the digits in run.json. False: these are not an id. */
bool etd_run_id(const char *text, unsigned char id[ETD_RUN_ID]);

/* ---- records: record.c ---- */

/* Writes R from number *FROM on, as many as a frame takes (HEAD->kind, hseq and rank
 * are the record's), and moves *FROM on. Called until *FROM is R->n; once where that is
 * 0. Returns bytes; 0: no room. */
size_t etd_record_write(void *bytes, size_t room, const struct etd_head *head,
                        const struct et_record *r, int *from);

/* Puts records together again. */
struct etd_join {
    struct et_ctx *cx;
    struct et_log_entry *entry; /* [room] */
    struct et_log_span *span;   /* [spans], where it stands for several records */
    int64_t room, spans;
    int64_t of;   /* records that it stands for */
    int n;        /* of the record under way */
    int parts;    /* of it so far; 0: none is under way */
    int64_t hseq; /* its */
    bool has_text;
    char text[ETD_TEXT_ROOM];
};
void etd_join_init(struct etd_join *j, struct et_ctx *cx);
void etd_join_release(struct etd_join *j);
/* Adds a frame of a record. *WHOLE: that was the last, and *OUT, borrowed until the
 * next call, is the record. EFORMAT for a part that does not go on where the last
 * ended, and then the record under way is dropped; ENOMEM. */
ET_NODISCARD et_status etd_join_add(struct etd_join *j, const struct etd_frame *f,
                                    struct et_record *out, bool *whole);

/* ---- commands: command.c ---- */

/* The operations (RELIABILITY.md 6.1): what KEY and VALUE are of each; one in brackets
 * may be left out. */
#define ETD_OP_MAP(X)                                                                  \
    X(PAUSE, "pause", NULL, NULL, "holds the run before its next batch")               \
    X(CONTINUE, "continue", NULL, NULL, "ends that")                                   \
    X(STOP, "stop", NULL, NULL, "saves, and ends the run behind the batch under way")  \
    X(KILL, "kill", NULL, "[rank]", "ends the run, or that rank of it, at once")       \
    X(CHECKPOINT, "checkpoint", NULL, "[tag]", "saves, and goes on")                   \
    X(SET, "set", "option", "value", "changes an option that may change")              \
    X(ALGO, "algo", "algorithm", "on or off",                                          \
      "switches an algorithm; behind on, options of one that the run has not")         \
    X(LOGLEVEL, "loglevel", NULL, "level", "shows lines of the log from a level on")   \
    X(TAKE, "take", NULL, NULL, "keeps the run for its operator for 30 seconds")       \
    X(ANNOTATE, "annotate", NULL, "text", "adds a record of the kind annotation")

enum etd_op {
#define ETD_OP_ENUM(code, text, key, value, help) ETD_OP_##code,
    ETD_OP_MAP(ETD_OP_ENUM)
#undef ETD_OP_ENUM
        ETD_OP_COUNT
};
const char *etd_op_name(enum etd_op op);
/* Of etude-events(7): what it takes as key and as value (NULL: none; in brackets: or
 * none), and what it does. */
void etd_op_words(enum etd_op op, const char **key, const char **value,
                  const char **help);
/* May REJECTED have the number CODE (errors.h) for a command OP? For ETD_OP_COUNT: for
 * one that cannot be read. */
bool etd_op_rejects(enum etd_op op, int code);
/* Bytes of its value, zero included. */
size_t etd_op_room(enum etd_op op);
/* ETD_OP_COUNT: no command has that name. */
enum etd_op etd_op_of(const char *name);

enum {
    ETD_TTL_MS = 60000,       /* at most */
    ETD_LEASE_S = 30,         /* that `take` lasts */
    ETD_WORD = 160,           /* bytes of key, value and who, zero included; */
    ETD_NOTE = ETD_TEXT_ROOM, /* of the text of `annotate` */
};

struct etd_command {
    unsigned char id[ETD_CMD_ID]; /* random: the same id is the same command */
    enum etd_op op;
    int64_t if_rev; /* only while the settings have this revision; -1: whatever it is */
    int ttl_ms;     /* from now on; past it the command is not applied any more */
    char key[ETD_WORD], value[ETD_NOTE]; /* "" without */
    char who[ETD_WORD]; /* from hub to supervisor: "uid:1000" or "key:<fingerprint>" */
};

/* RECEIVED, APPLIED, REJECTED or EXPIRED. */
struct etd_answer {
    unsigned char id[ETD_CMD_ID];
    enum etd_kind kind;
    int64_t step;              /* APPLIED: finished batches when it was, by all ranks */
    int64_t rev;               /* APPLIED: revision of the settings since then */
    int code;                  /* REJECTED: an error number for people, 5xxx */
    char text[ETD_STRING / 4]; /* REJECTED: why; APPLIED: old and new value, or "" */
};

/* CMD in HEAD's run. Returns bytes; 0: no room. */
size_t etd_command_write(void *bytes, size_t room, const struct etd_head *head,
                         const struct etd_command *c);
/* NULL: it is a whole command; else what is wrong with it, for REJECTED: constant text.
 * The id is read wherever there is one. */
const char *etd_command_read(const struct etd_frame *f, struct etd_command *out);
size_t etd_answer_write(void *bytes, size_t room, const struct etd_head *head,
                        const struct etd_answer *a);
bool etd_answer_read(const struct etd_frame *f, struct etd_answer *out);

/* ---- between hub and supervisor ----
 *
 * fd 3 of the hub, the program's hidden command "__hub RUN_DIRECTORY", is one end of a
 * SOCK_SEQPACKET pair: each packet is one frame.
 *
 *     hub         HELLO {"endpoint": path, "why": text}  it listens: its first packet.
 *                                           Again where it has lost that place ("why"),
 *                                           and with "" for a path while it has none
 *                 CMD   {...}               a command, its who filled in, if_rev and
 *                                           run checked by nobody but the supervisor
 *     supervisor  APPLIED, REJECTED or EXPIRED  its answer
 *                 BYE   {}                  the hub is to end; so does the end of file,
 *                                           answered likewise once all viewers know
 *
 * A hub that was restarted sends commands without an answer in control.log again: the
 * supervisor keeps the answers to the ids that it has seen, and gives them again. When
 * the time of a command is over before all ranks have it, it answers EXPIRED. `take` is
 * answered APPLIED like others and logged; the hub keeps the lease. `annotate` changes
 * nothing: who has taken the run, and the settings' revision, are nothing to it. */
enum { ETD_HUB_FD = 3 };
#define ETD_HUB_COMMAND   "__hub"
#define ETD_RELAY_COMMAND "__relay" /* what ssh starts: worker.h */

#endif
