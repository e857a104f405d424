/* SPDX-License-Identifier: Apache-2.0 */
/* cli.h: what the files of src/cli share: options, errors, and the state of one
 * call. */
#ifndef ET_CLI_H
#define ET_CLI_H

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/types.h>

#include "core/config/settings.h"
#include "core/assemble/assemble.h"
#include "core/assemble/saving.h"
#include "core/assemble/curve.h"
#include "dist/wire/errors.h"
#include "dist/run/launch.h"
#include "dist/comm/rank_env.h"
#include "dist/run/rank.h"
#include "etude/run.h"

struct json_t;
struct etd_target;

/* Exit codes, UX.md section 2. */
enum cli_exit {
    CLI_OK = 0,
    CLI_FAILED = 1,
    CLI_DIFFERENT = 1, /* of `weights diff`, as of diff */
    CLI_DIVERGED = 3,
    CLI_NO_MEMORY = 4,
    CLI_HUNG = 5,
    CLI_MISSED = 6,
    CLI_USAGE = 64,
    CLI_WRONG = 65,
    CLI_MISSING = 66,
    CLI_UNAVAILABLE = 69,
    CLI_BUG = 70,
    CLI_CANNOT_WRITE = 73,
    CLI_PREEMPTED = 75, /* stopped early with a checkpoint: run again to continue */
    CLI_ABI = 76,       /* another version's: of a plugin, a checkpoint */
    CLI_DENIED = 77,
    CLI_CONFIG = 78,
    CLI_SIGNAL = 128, /* plus its number */
};

/* number, code, exit, what it stands for: the errors of the program itself; those of
 * recipes are in diagnostic.h. Numbers are never used twice. */
#define CLI_ERROR_MAP(X)                                                               \
    X(1101, OPTION, CLI_USAGE, "an option that is not known or does not apply")        \
    X(1102, VALUE, CLI_USAGE, "a value of an option that cannot be used")              \
    X(1103, OPERAND, CLI_USAGE, "an operand that is missing or one too many")          \
    X(1104, COMMAND, CLI_USAGE, "a command that is not known")                         \
    X(1105, LATER, CLI_UNAVAILABLE, "something this version does not do")              \
    X(1106, NAME, CLI_MISSING, "a recipe or component that is not there")              \
    X(1107, FOLDER, CLI_MISSING, "a folder that cannot be entered")                    \
    X(1108, CONFIG, CLI_MISSING, "a user configuration that cannot be read")           \
    X(1109, NO_RUN, CLI_MISSING, "a run that is not there")                            \
    X(1301, PARTS, CLI_WRONG, "parts of a recipe that do not fit each other")          \
    X(3004, CHECKPOINT_ALONE, CLI_WRONG, "a checkpoint that is in no run")             \
    X(2001, NO_DATA, CLI_MISSING, "data that are not there")                           \
    X(2002, BAD_DATA, CLI_WRONG, "data that are not what they should be")              \
    X(4005, PLUGIN, CLI_FAILED, "a plugin that crashed or ended the program")          \
    X(6001, RUN, CLI_FAILED, "a run that failed")                                      \
    X(6002, NOT_FINITE, CLI_DIVERGED, "a run that diverged")                           \
    X(6003, TARGET, CLI_MISSED, "a run that missed its target")                        \
    X(6004, SIGNALLED, CLI_PREEMPTED, "a run that a signal ended, with a checkpoint")  \
    X(6007, HUNG, CLI_HUNG, "a run that hung")                                         \
    X(6006, LOST, CLI_FAILED, "a run whose device failed")                             \
    X(6005, BUSY, CLI_UNAVAILABLE, "what another process writes")                      \
    X(7001, MEMORY, CLI_NO_MEMORY, "too little memory")                                \
    X(7002, WRITE, CLI_CANNOT_WRITE, "something that cannot be written")               \
    X(7003, DEVICE, CLI_UNAVAILABLE, "a device that cannot be used")                   \
    X(9001, BUG, CLI_BUG, "a fault of etude itself")                                   \
    ETD_ERROR_MAP(X)

enum cli_error {
#define CLI_ERROR_ENUM(number, code, exit, what) CLI_E_##code = number,
    CLI_ERROR_MAP(CLI_ERROR_ENUM)
#undef CLI_ERROR_ENUM
};

struct cli_options {
    const char *folder; /* -C */
    const char *config; /* the user's file; NULL: where it is */
    int verbose, quiet; /* times given */
    bool json, ascii, help, version;
    int color, progress; /* enum eti_color, eti_show */
    int log_level;       /* enum et_log_level; -1 = not given */
    const char *log_file;
    bool no_mouse, readonly;
    const char *dump_screen, *keys; /* WxH; keys to press first */
    int64_t at;                     /* record to stop at; 0: the last */
    bool module_mode, dry_run, origin, model;
    const char *run_directory, *run_name, *target, *copy, *recipe_folder;
    const char *resume, *load; /* RUN|CKPT, CKPT */
    bool autoresume;
    const char *every; /* between lines of progress */
    const char *until; /* when to save and end */
    int to;            /* enum of export.c; -1 = not given */
    int form;          /* place in et_model_forms; -1 = not given */
    const char *output, *metrics;
    int64_t limit;       /* samples to read; -1 = not given */
    bool pictures;       /* of `data show` */
    const char *without; /* likewise: transforms */
    int64_t epoch, from; /* likewise; -1 = not given */
    /* Of generate, as they stand; the seed of sweep, too. */
    const char *length, *temperature, *top_k, *top_p, *seed, *prompts;
    const char *jobs, *random, *list, *halving, *metric; /* of sweep, likewise */
    const char *sort, *pareto;
    const char *svg;    /* of compare */
    bool seeds;         /* likewise */
    bool leave_one_out; /* of sweep */
    bool reindex, follow;
    int64_t rank;             /* of `logs` and `kill`; -1 = not given */
    int level;                /* of `logs`: enum et_log_level */
    int dtype;                /* place among those of --dtype; -1 = not given */
    const char *listen, *key; /* of `worker` */
    bool all;
    const char *nproc, *world_size, *base_rank, *node_rank; /* as they were given */
    const char *master_addr, *master_port, *rank_stdout, *rank_stderr, *timeout;
    const char *on; /* a worker: WORKER[:GPUS] */
    bool detach;
    const char *tokenizer;                  /* of generate and `data tokenize` */
    const char *field, *end, *val_fraction; /* of `data tokenize` */
    int document;                           /* enum eti_document */
    int64_t threads;                        /* -1 = not given */
    bool plain;
};

enum { CLI_MAX_OPTIONS = 128, CLI_MOST_TOGETHER = 64 };
enum { CLI_OWN_OVERRIDES = 4 }; /* that a command adds to those of its user */

struct cli {
    struct et_ctx *cx;
    const struct cli_command *command; /* NULL: none was named */
    struct cli_options opt;
    struct eti_config *config; /* NULL: commands that do without */
    struct cli_plugins
        *plugins; /* all that were loaded, the latest first; NULL: none */
    const struct et_registry
        *registry;    /* what the latest recipe knows; NULL: the core's */
    const char **arg; /* operands, the command itself left out */
    int n_args;
    struct et_override *override; /* --alg, --unset and key=value, in order */
    int n_overrides;
    bool given[CLI_MAX_OPTIONS];         /* row i of cli_option_table was used */
    FILE *log;                           /* --log-file */
    struct et_callback *progress;        /* borrowed; NULL: none under way */
    struct et_callback *const *callback; /* the others of the run, borrowed: lines go
                                            to those that take them; NULL: none */
    int n_callbacks;
    struct eti_index *index; /* of runs, just looked at, for the workbench; NULL */
    struct et_run *run; /* of `train`; NULL: none under way, or another rank keeps it */
    char directory[PATH_MAX];     /* of the run, once ranks have shared it */
    struct etd_rank_env rank_env; /* of `train`: which rank this process is */
    struct et_comm *comm;         /* of the run's ranks; NULL: there is one */
    char **argv;                  /* as the program was called */
    int argc;
    bool results_are_json; /* standard output has JSON lines */
    FILE *out, *err; /* results and errors: standard streams, or those of a rank */
    bool has_color;  /* ERR has */
    struct etd_rank *rank;          /* this process is a rank; NULL: it is not */
    int nproc;                      /* ranks of the run that is launched */
    pid_t child[CLI_MOST_TOGETHER]; /* together.c: the ranks of this command, */
    int n_children;
    struct cli_said *said; /* and what they have said; NULL: it has none */
};

/* One command: a row of commands.def. */
struct cli_command {
    const char *name, *group, *synopsis, *summary;
    int (*run)(struct cli *c); /* returns the exit code; NULL: of a later version */
};
enum {
#define CLI_COMMAND(name, group, synopsis, summary)       +1
#define CLI_LATER_COMMAND(name, group, synopsis, summary) +1
    CLI_COMMANDS = 0
#include "cli/commands.def"
#undef CLI_COMMAND
#undef CLI_LATER_COMMAND
};
extern const struct cli_command cli_commands[]; /* ends with a row without name */
const struct cli_command *cli_command_find(const char *name);

/* ---- program.c ---- */

struct eti_seams;
/* All of the program, on a world that tests may change. Returns the exit code. */
int cli_main(int argc, char **argv, const struct eti_seams *seams);

/* ---- ranks.c ---- */

/* c->rank_env, from the environment. */
int cli_ranks_find(struct cli *c);
/* The device's threads: each rank gets its part of this machine's cores; 0: the
 * device's choice. */
int cli_ranks_threads(const struct cli *c);
/* c->comm; RECIPE's seed and name become rank 0's. */
int cli_ranks_join(struct cli *c, struct et_recipe *recipe);
/* c->directory becomes that of rank 0's run, which is open. */
int cli_ranks_share(struct cli *c);

/* ---- together.c ---- */

/* Starts the ranks of --nproc, before anything has begun a thread. *IS_RANK: this
 * process is one of them, or of a launcher's, or the only one, and goes on. Else it has
 * waited for them, and returns the code of one that failed. */
int cli_together_start(struct cli *c, bool *is_rank);
/* Is TEXT to be said? Not where another rank of this command has said it. Until
 * cli_together_said, where it is, a signal that ends this rank waits. */
bool cli_together_claim(const struct cli *c, const char *text, sigset_t *before);
void cli_together_said(const struct cli *c, const sigset_t *before);

/* ---- hidden.c ---- */

/* Runs a command that only the program itself gives; *EXIT says how it ended. False:
 * the words are no such command. */
bool cli_hidden(struct cli *c, int argc, char **argv, int *exit);

/* ---- options.c: the one table of options ---- */

enum cli_option_type {
    CLI_FLAG,   /* bool */
    CLI_COUNT,  /* int: one more each time */
    CLI_TEXT,   /* const char * */
    CLI_CHOICE, /* int: index into choices */
    CLI_INT,    /* int64_t, at least 0 */
    CLI_CHANGE, /* an override of the recipe: kind */
    CLI_LATER,  /* refused: takes a value where there is a metavar */
};
struct cli_option {
    const char *name; /* without dashes, - and _ alike */
    char letter;      /* 0 = none */
    enum cli_option_type type;
    size_t offset;        /* in struct cli_options */
    const char *metavar;  /* NULL: takes no value */
    const char *commands; /* those that take it, space-separated; NULL: all */
    const char *const *choices;
    enum et_override_kind kind;
    const char *group; /* as help shows it */
    const char *help;
    const char *others; /* why other commands do not take it; NULL: it is plain */
};
extern const struct cli_option cli_option_table[]; /* ends with a row without name */

/* Reads the command line into C; what is wrong is printed. Returns an exit code. */
int cli_parse(struct cli *c, int argc, char **argv);
bool cli_takes(const struct cli_option *o, const char *command);
/* The option that WORD, "--name", "--name=value", "-n" or "-nvalue", ends with; *VALUE
 * is its value in there, or NULL. NULL: no option ends so. */
const struct cli_option *cli_option_of_word(const char *word, const char **value);

/* ---- errors.c ---- */

/* Prints one error, and returns its exit code. HINT may be NULL. */
int cli_fail(struct cli *c, enum cli_error code, const char *hint, const char *fmt, ...)
    ET_PRINTF(4, 5);
/* The same for the error that stands in the context, met in STAGE. */
int cli_fail_status(struct cli *c, enum eti_stage stage, et_status status);
/* The same for what KEY of a recipe says at PLACE; both may be NULL. */
int cli_fail_status_at(struct cli *c, enum eti_stage stage, et_status status,
                       const struct et_place *place, const char *key);
/* The exit code that it would return. */
int cli_exit_of_status(const struct cli *c, enum eti_stage stage, et_status status);
/* All of LIST, on stdout where they are the result. Returns the exit code for it. */
int cli_fail_list(struct cli *c, const struct et_diagnostics *list, FILE *out);
/* Where lines of the core go: DATA is the struct cli. */
void cli_log(void *data, enum et_log_level level, const char *text);
/* The level of lines on the screen: warnings; more with -v, errors alone with -q; or
 * what "loglevel" has asked for since. */
enum et_log_level cli_screen_level(const struct cli *c);
/* Shows a line that is to be shown; TEXT is visible already. */
void cli_show_line(struct cli *c, enum et_log_level level, const char *text);

/* ---- recipe.c: what commands that read a recipe share ---- */

/* Reads the recipe that the operand NAME means, with all overrides. NULL on failure,
 * and *EXIT says how to end. */
struct et_recipe *cli_load_recipe(struct cli *c, const char *name, int *exit);
/* The same for the only operand; exit 64 where no operand is given, or several. */
struct et_recipe *cli_load_only_recipe(struct cli *c, int *exit);
/* Draws what the recipe leaves open: seed, run name; opens O->dev, the caller's until
 * it assembles, for what auto means here. */
int cli_settle_recipe(struct cli *c, struct et_recipe *recipe,
                      struct eti_assemble_options *o);
/* Does the system let a run have what it needs? limits.c. */
int cli_check_limits(struct cli *c);
/* How the environment changes what is assembled: ETUDE_DEVICE, ETUDE_LIMIT_BATCHES. */
int cli_assemble_options(struct cli *c, struct eti_assemble_options *o);

/* ---- eval.c: a model that was trained, and its eval_data ---- */

/* Does something with A, whose model has its weights: of the run FROM, or where its
 * directory is "" of a recipe or a file. Returns an exit code. */
typedef int cli_use_model(struct cli *c, struct eti_assembly *a,
                          const struct eti_origin_run *from, void *data);
/* Makes what the operand names, a run or a recipe, and calls USE with it and DATA. */
int cli_use(struct cli *c, cli_use_model *use, void *data);

/* ---- rundir.c: the run directory of `train` ---- */

/* What a run directory is opened for; all borrowed. */
struct cli_run {
    const struct et_recipe *recipe; /* its bytes, and the run's name */
    const char *recipe_name;        /* NULL: it has none */
    const char *resolved;           /* its text */
    const char *resumed;            /* the directory to go on in; NULL: a new run */
    struct et_device *dev;
};
/* Opens c->run. Its caller closes it after all that writes there is closed. */
int cli_run_begin(struct cli *c, const struct cli_run *run);
/* How a run ended. */
struct cli_end {
    const char *state; /* a word of GLOSSARY.md */
    int exit;
    const struct et_state *s; /* NULL: training never began */
};
/* Ends the display of the run; the caller then prints what it came to, or the error. */
void cli_run_notice(struct cli *c, const struct cli_end *end);
/* Prints the last lines of RANK's log and where it is; LESS: but for the very last. */
void cli_explain_end(FILE *to, const char *directory, int rank, bool less);
/* Records how the run ended, and prints where to look if it failed. */
void cli_run_end(struct cli *c, const struct cli_end *end);

/* ---- runlist.c: runs that there were, as facts (core/library/facts.h) ---- */

/* The newest MOST (0: all) of those that are known or in ./runs, which are *OF, the
 * newest first; AGAIN: read anew. NULL on failure, and *EXIT says how to end. The
 * caller owns it, also below. */
struct json_t *cli_run_list(struct cli *c, bool again, int64_t most, int64_t *of,
                            int *exit);
/* Of those [{name, state}], without a word where that fails. */
struct json_t *cli_run_names(struct cli *c);
/* The list of them. NULL on failure, and *EXIT says how to end. */
struct eti_index *cli_run_index(struct cli *c, int *exit);
/* The one that TEXT means: its name, its directory, or "last". Exit 66 for none. */
struct json_t *cli_run_find(struct cli *c, const char *text, int *exit);
/* Does TEXT mean a run of another machine, "RUN@WORKER" or tcp://HOST:PORT/RUN? */
struct etd_target;
bool cli_run_is_far(struct cli *c, const char *text, struct etd_target *target);
/* Such a run, copied by its worker into a temporary folder, the directory of its facts,
 * as far as it is there now; it is called TEXT. WITH_EVENTS: else its facts and recipes
 * are copied alone. NULL on failure, and *EXIT says how to end. Whoever has done with
 * it lets go of the folder. */
struct json_t *cli_run_fetch(struct cli *c, const char *text,
                             const struct etd_target *target, bool with_events,
                             int *exit);
void cli_run_forget_copy(const char *folder);
/* Remembers the run in DIRECTORY. It is no fault where that cannot be done. */
void cli_run_remember(struct cli *c, const char *directory);
/* Its events.log. NULL on failure, and *EXIT says how to end. */
struct et_events *cli_run_events(struct cli *c, const struct json_t *facts, int *exit);
/* Text of a fact, made visible, in BUF; "-" where the run has not that fact. */
const char *cli_fact(const struct json_t *facts, const char *key, char *buf,
                     size_t size);
/* "2025-11-20 13:56", local; "-" for 0. */
const char *cli_clock(double t, char *buf, size_t size);
/* ---- resume.c: going on with a run ---- */

/* What TEXT means: a run by its folder, by its name, or "last"; or a checkpoint of
 * one. */
int cli_find_origin(struct cli *c, const char *text, struct eti_origin_run *out);
/* Which run --resume or --autoresume means: OUT->directory is "" for a new run. */
int cli_resume_find(struct cli *c, struct eti_origin_run *out);
/* The recipe of that run, with overrides; or, where one was named, that one. */
struct et_recipe *cli_resume_recipe(struct cli *c, const struct eti_origin_run *from,
                                    int *exit);
/* As cli_settle_recipe with what the run drew; refuses what a resume cannot change. */
int cli_resume_settle(struct cli *c, const struct eti_origin_run *from,
                      struct et_recipe *recipe, struct eti_assemble_options *o);

/* ---- tokenize.c ---- */

/* `etude data tokenize`. */
int cli_data_tokenize(struct cli *c);

/* ---- until.c ---- */

struct cli_until {
    struct et_time at;
    struct et_trainer_steps steps;
};
/* Is what --until says a time? Returns an exit code. */
int cli_until_check(struct cli *c);
/* The run of CONFIG ends when it says, if it does. U is borrowed by CONFIG. */
void cli_until_begin(struct cli *c, struct cli_until *u,
                     struct et_trainer_config *config);

/* ---- train.c ---- */

/* Trains anew as the recipe at PATH says, which is called NAME (NULL: nobody knows). */
int cli_train_recipe(struct cli *c, const char *path, const char *name);

/* ---- launch.c, front.c: the processes of `train` ---- */

/* Which ranks are started here: their numbers, and where they meet. NPROC: how many the
 * recipe wants; ET_INT_UNSET: it does not say. */
int cli_launch_read(struct cli *c, int64_t nproc, struct etd_launch *l);
/* Sends the recipe at PATH, which is called NAME (NULL: nobody knows), to WHERE,
 * "WORKER[:GPUS]", which starts it: on.c. */
int cli_train_on(struct cli *c, const char *path, const char *name, const char *where);
/* Shows the run that was launched until it ends, or is left. Frees LINK. */
int cli_front(struct cli *c, struct etd_front *link);

/* The same of the run TO at WORKER, which was started from here: far.c. */
int cli_front_far(struct cli *c, const char *worker, struct etd_target *to);
/* Says that it goes on without. */
void cli_say_far(const struct cli *c, const char *worker, const char *name);

/* ---- passing.c: signals of a process that shows a run ---- */

struct cli_passing {
    int fd;                       /* readable: HEAR has something to do */
    int wait_ms;                  /* and without that after so long; -1: never */
    bool can_ask;                 /* there is a run to leave */
    struct et_callback *progress; /* NULL: nothing is shown */
    bool (*hear)(void *data);     /* true: the run has ended */
    void (*pass)(void *data, int number);
    void *data;
};
/* From now on INT, TERM, USR1 and USR2 are kept for the function below. */
void cli_passing_begin(void);
/* Passes on what has come; asks first where a terminal and UX.md want that. True: the
 * run is to be left as it is. */
bool cli_pass_signals(const struct cli_passing *p);

/* ---- signals.c ---- */

/* In a process that computes, before it opens a device: from now on a thread takes what
 * is caught, and the caller and all threads that it begins block it. EIO: there is no
 * such thread. */
ET_NODISCARD et_status cli_signals_apart(struct et_ctx *cx);
/* From now on they are caught; GRACE: seconds to save in after one, 0: no limit. */
void cli_signals_catch(double grace);
int cli_signal_received(void); /* 0: none that ends the run */
/* The run is to end as by a signal, though none has come. */
void cli_signals_end_run(void);
/* Not 0 once the run is to end; once a checkpoint is asked for. */
volatile const int *cli_signal_interrupt(void);
volatile int *cli_signal_checkpoint(void);

/* ---- workbench.c: see also workbench.h ---- */

/* `etude` alone: the workbench. */
int cli_open(struct cli *c);
/* The workbench with the run in DIRECTORY, until it is left: --progress tui. */
int cli_watch(struct cli *c, const char *directory);
/* The same with a run elsewhere. */
int cli_watch_far(struct cli *c, struct etd_target *target);
/* Can it be shown here: on a terminal that can place its cursor? */
bool cli_has_screen(void);

/* ---- progress.c ---- */

/* Is a run to be shown by the workbench? */
bool cli_progress_is_tui(const struct cli *c);

/* What --progress and --every mean here: c->results_are_json. Returns an exit code. */
int cli_progress_check(struct cli *c);
/* A logger that shows a run as --progress says; *OUT is NULL where nothing is to be
 * shown. Messages of the core go through it until c->progress is NULL again. */
int cli_progress_new(struct cli *c, struct et_callback **out);

/* ---- settings.c: the user's configuration ---- */

/* The folder of the user's files. Returns BUF. */
const char *cli_user_folder(char *buf, size_t size);
/* The configuration file of each layer, there or not. */
void cli_config_paths(const struct cli *c, char path[ETI_LAYERS][PATH_MAX]);
/* Reads c->config; what is wrong is printed. Returns an exit code. */
int cli_config_load(struct cli *c);
/* Prints ERRORS of a configuration. Returns the exit code for STATUS. */
int cli_config_fail(struct cli *c, et_status status,
                    const struct et_diagnostics *errors);

/* ---- plugins.c: libraries that the configuration allows ---- */

/* For et_recipe_env.load_plugins: DATA is the struct cli. The same names in the same
 * order give the same components again: libraries are loaded once. */
ET_NODISCARD et_status cli_load_plugins(void *data, const char *const *names,
                                        const struct et_place *places, int n,
                                        struct et_diagnostics *errors,
                                        const struct et_registry **out);
/* For commands without a recipe: the core's components and those of all plugins that
 * are allowed; one that cannot be loaded is warned about. */
const struct et_registry *cli_all_components(struct cli *c);
/* One of them, or NULL. Plugins are loaded only for a name that the core lacks. */
const struct et_component *cli_find_component(struct cli *c, enum et_kind kind,
                                              const char *name);
/* The path of the plugin that ADDRESS is in; NULL: none. For signal handlers too. */
const char *cli_plugin_at(const struct cli *c, const void *address);
void cli_free_plugins(struct cli *c);

/* ---- guard.c: a plugin that crashes or ends the program is named ---- */

/* From here on, until C's plugins are freed. */
void cli_guard_begin(struct cli *c);
/* From here on a library that runs out of memory, and has no status for it, ends the
 * program with exit code 4. */
void cli_guard_memory(void);
void cli_guard_end(void);
/* The plugins NAMES [N] are being loaded; 0: none is. */
void cli_guard_loading(const char *const *names, int n);
/* TS is borrowed until the next call: how far the run is. NULL: none is under way. */
void cli_guard_watch(const struct et_timestamp *ts, int rank);

/* ---- find.c: installed files ---- */

/* The folders that hold recipes, best first; NULL past the end. BUF holds the path. */
const char *cli_recipe_folder(int i, char *buf, size_t size);
/* Is the file PATH in one of them or in a folder there, the user's own aside? It need
 * not be there yet. */
bool cli_recipe_is_installed(const char *path);
/* The folder of Etude's own entry in terminfo, in BUF, which it returns. */
const char *cli_terminfo_folder(char *buf, size_t size);
/* Path of the installed recipe NAME, or FOLDER/NAME, in BUF; false when none has that
 * name. */
bool cli_recipe_find(const char *name, char *buf, size_t size);

/* ---- recipes.c ---- */

/* The installed recipes: name, which has the folder that one is in, title, path. The
 * caller owns it. */
struct json_t *cli_recipe_list(void);

/* ---- complete.c ---- */

/* The first argument of a call that asks what may follow; see complete.h. */
#define CLI_COMPLETE "__complete"
/* Answers such a call: the ARGC words behind that argument. */
int cli_complete(struct cli *c, int argc, char **argv);

/* ---- print.c ---- */

/* Prints V as one JSON document and a newline on stdout; takes the reference. */
int cli_print_json(struct json_t *v);
/* Prints V, which it takes over, with jansson's FLAGS, and ends the line. */
void cli_put_json_as(FILE *to, struct json_t *v, size_t flags);
/* TEXT, such as a path, as a value; where it is not UTF-8, as et_visible shows it. */
struct json_t *cli_json_text(const char *text);
/* The same to TO; V is not NULL. */
void cli_put_json(FILE *to, struct json_t *v);
/* The table of options of a component, or its lines as JSON. */
void cli_print_options(const struct et_option *table, const char *indent);
struct json_t *cli_options_json(const struct et_option *table);
/* The names of the events whose bits (ET_ON) are set. */
struct json_t *cli_events_json(uint64_t events);
/* "1.2 MB", "78,042", "3.1 GFLOP": returns BUF. */
const char *cli_bytes(double bytes, char *buf, size_t size);
const char *cli_count(int64_t n, char *buf, size_t size);
const char *cli_scaled(double x, const char *unit, char *buf, size_t size);

/* ---- curve.c: a learning rate over a run ---- */

/* What charts are drawn with: --ascii, the configuration, the locale. Never auto. */
enum eti_plot cli_plot_glyphs(const struct cli *c);
/* Draws CURVE, called WHAT, in 80 columns. Returns an exit code. */
int cli_print_curve(struct cli *c, const struct eti_curve *curve, const char *what);
/* explain_key.c: explains the keys and options that WORD may mean, or says what near to
 * it there is; false: there is nothing of the kind. */
bool cli_explain_key(struct cli *c, const char *word, int *code);
/* explain_groups.c: has the recipe's optimizer parameter groups? */
bool cli_has_groups(const struct et_recipe *recipe);
/* The rest and each of them as an object; how much of the model it has where A has one.
 */
struct json_t *cli_groups_json(struct et_ctx *cx, const struct et_recipe *recipe,
                               const struct eti_assembly *a);
void cli_print_groups(struct json_t *list);
/* At most 257 of its points, evenly, the first and the last among them. */
struct json_t *cli_curve_json(const struct eti_curve *curve);

/* ---- explain_model.c: a model as a table ---- */

int cli_explain_recipe_model(struct cli *c, struct et_recipe *recipe);
/* For images of 224 x 224 or 128 tokens, where no change says otherwise; nothing for a
 * model that needs an option. */
int cli_explain_model(struct cli *c, const struct et_model_class *type);

/* ---- model_of.c: a run's model in the forms of others ---- */

int cli_weights_export(struct cli *c);
int cli_export_onnx(struct cli *c);

#define CLI_COMMAND(name, group, synopsis, summary) int cli_##name(struct cli *c);
#define CLI_LATER_COMMAND(name, group, synopsis, summary)
#include "cli/commands.def"
#undef CLI_COMMAND
#undef CLI_LATER_COMMAND

#endif
