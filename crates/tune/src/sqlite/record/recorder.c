/* Records the statements that a program runs on one SQLite database, into a file of events.
 *
 * Preloaded (LD_PRELOAD), it interposes the functions of libsqlite3.so that open a database, and sets a trace callback
 * on each connection to the recorded one (sqlite3_trace_v2). SQLite itself then reports each statement as it starts,
 * with its values in place of the parameters (sqlite3_expanded_sql), and as it ends. It interposes sqlite3_step and
 * sqlite3_exec only to learn which statements fail, and the functions that set a trace callback only to learn that ours
 * is gone. A program that is linked with a SQLite of its own can load this file as an extension instead
 * (sqlite3_flashwiserecorder_init); then neither is seen.
 *
 * The program works as without it. Each interposed function calls the real one; where functions that recording needs
 * are missing, nothing is recorded. errno is kept. The file of events is opened for each event, because a program may
 * close descriptors that it did not open; the descriptor that is kept is for a program that has dropped its rights to
 * open it. O_APPEND keeps events of several threads and processes whole. Nothing is written beyond a limit, nor beyond
 * the program's own for the size of a file. Where an event is lost, the recording ends for all processes: the place is
 * marked in the beginning of the file, which is mapped, so that a process can mark it that can write nothing any more.
 *
 * The text of a statement ends at the first NUL in one of its values (sqlite3_expanded_sql). The functions that bind
 * texts are interposed to report such a value; one that is bound by sqlite3_bind_value is not seen.
 *
 * It is C because it runs in a foreign process, under SQLite's names: no runtime, no unwinding, nothing to initialise.
 *
 * Source: SQLite's "C-language Interface Specification" on sqlite3_trace_v2, and sqlite3ext.h; ld.so(8); dlsym(3).
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

typedef struct sqlite3 sqlite3;
typedef struct sqlite3_stmt sqlite3_stmt;

#define PUBLIC __attribute__((visibility("default")))

/* Of SQLite's result codes and trace events. */
enum { OK = 0, ERROR = 1, ABORT = 4, BUSY = 5, ROW = 100, DONE = 101, OK_LOAD_PERMANENTLY = 256 };
enum { TRACE_STMT = 1, TRACE_PROFILE = 2, TRACE_CLOSE = 8 };

/* Of the events; record/events.rs has the same. */
enum { LOADED = 1, OPENED, OPENED_OTHER, STARTED, ENDED, FAILED, CLOSED, TRACE_LOST, RESUMED, NOT_TRACED,
       NUL_BOUND };
/* STARTED: the values are missing. ENDED, RESUMED: a transaction is open. FAILED: the transaction was rolled back with
 * it. */
enum { FLAG = 1 };

/* The head of an event, with its text behind it. */
struct event {
    uint32_t bytes; /* with the text */
    uint32_t kind;
    int32_t process;
    int32_t code;
    uint64_t time_ns;
    uint64_t database;
    uint64_t statement;
    uint64_t flags;
};

static char events[PATH_MAX];   /* the file of events */
static char recorded[PATH_MAX]; /* the recorded database, without links */
static uint64_t limit;          /* of the file of events, bytes; 0 where nothing is recorded */
static struct stat identity;    /* of the file of events */
static int spare = -1;          /* a descriptor of it */
static uint64_t *ends_at;       /* the beginning of the file of events: where the recording ends, 0 while nothing is lost */

/* Where an event is lost, but not known where. */
static const uint64_t SOMEWHERE = UINT64_MAX;

static int open_events(void) { return open(events, O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW); }

/* Events behind the first lost one are of no use: what they build on is missing. */
static void end_at(uint64_t place) {
    uint64_t known = __atomic_load_n(ends_at, __ATOMIC_RELAXED);
    while ((known == 0 || place < known) &&
           !__atomic_compare_exchange_n(ends_at, &known, place, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
}

/* Writes behind the file's end. Where the program's own limit for the size of a file is reached, the kernel sends
 * SIGXFSZ to the thread, which would end the program: it is held back, and taken. */
static ssize_t append(int file, const struct iovec *parts, int count) {
    struct rlimit own;
    if (getrlimit(RLIMIT_FSIZE, &own) == 0 && own.rlim_cur == RLIM_INFINITY) return writev(file, parts, count);
    sigset_t signal, before, pending;
    sigemptyset(&signal);
    sigaddset(&signal, SIGXFSZ);
    sigprocmask(SIG_BLOCK, &signal, &before);
    int was_pending = sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ);
    ssize_t written = writev(file, parts, count);
    struct timespec now = {0, 0};
    if (written < 0 && errno == EFBIG && !was_pending) sigtimedwait(&signal, NULL, &now);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return written;
}

static void emit(uint32_t kind, int code, const void *database, const void *statement, uint64_t flags,
                 const char *text) {
    if (limit == 0 || __atomic_load_n(ends_at, __ATOMIC_RELAXED) != 0) return;
    int kept = errno;
    int own = open_events(), file = own >= 0 ? own : spare;
    struct stat found;
    size_t length = text ? strlen(text) : 0;
    if (length >= limit) {
        length = 0;
        flags |= FLAG;
    }
    /* The program may have closed the spare descriptor, and given its number to a file of its own. */
    if (fstat(file, &found) != 0 || found.st_dev != identity.st_dev || found.st_ino != identity.st_ino) {
        end_at(SOMEWHERE);
    } else if ((uint64_t)found.st_size >= limit) {
        end_at((uint64_t)found.st_size);
    } else {
        struct timespec now = {0, 0};
        clock_gettime(CLOCK_MONOTONIC, &now);
        struct event head = {
            .bytes = (uint32_t)(sizeof head + length),
            .kind = kind,
            .process = getpid(),
            .code = code,
            .time_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec,
            .database = (uintptr_t)database,
            .statement = (uintptr_t)statement,
            .flags = flags,
        };
        struct iovec parts[2] = {{&head, sizeof head}, {(void *)text, length}};
        ssize_t written = append(file, parts, length ? 2 : 1);
        /* A full disk, for one. Another process may have written behind a part of an event by now. */
        if (written != (ssize_t)head.bytes) {
            off_t end = written > 0 ? lseek(file, 0, SEEK_CUR) : -1;
            end_at(end >= written && end > 0 ? (uint64_t)(end - written) : SOMEWHERE);
        }
    }
    if (own >= 0) close(own);
    errno = kept;
}

/* One variable of the environment, where it fits. */
static int copy(char *to, const char *name) {
    const char *value = getenv(name);
    if (!value || strlen(value) >= PATH_MAX) return 0;
    strcpy(to, value);
    return 1;
}

/* Opens the file of events for good, above the numbers that programs expect their own files to have. */
static int keep_open(void) {
    enum { SPARE_FROM = 900 };
    int file = open_events();
    if (file < 0) return 0;
    spare = fcntl(file, F_DUPFD_CLOEXEC, SPARE_FROM);
    int is_known = fstat(file, &identity) == 0 && S_ISREG(identity.st_mode) && identity.st_size >= (off_t)sizeof *ends_at;
    void *start = is_known ? mmap(NULL, sizeof *ends_at, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
    if (start != MAP_FAILED) ends_at = start;
    close(file);
    return start != MAP_FAILED;
}

__attribute__((constructor)) static void load(void) {
    int kept = errno;
    const char *most = getenv("FLASHWISE_RECORD_LIMIT");
    if (most && copy(events, "FLASHWISE_RECORD_EVENTS") && copy(recorded, "FLASHWISE_RECORD_DATABASE") && keep_open()) {
        /* Texts are counted with 32 bits. */
        limit = strtoull(most, NULL, 10);
        if (limit > INT32_MAX) limit = INT32_MAX;
        emit(LOADED, 0, NULL, NULL, 0, NULL);
    }
    errno = kept;
}

/* The functions of one SQLite, NULL where it lacks one. A process may have several SQLites: libsqlite3, and others
 * within libraries of their own. */
struct functions {
    int (*open)(const char *, sqlite3 **);
    int (*open16)(const void *, sqlite3 **);
    int (*open_v2)(const char *, sqlite3 **, int, const char *);
    int (*step)(sqlite3_stmt *);
    int (*exec)(sqlite3 *, const char *, int (*)(void *, int, char **, char **), void *, char **);
    void *(*trace)(sqlite3 *, void (*)(void *, const char *), void *);
    int (*trace_v2)(sqlite3 *, unsigned, int (*)(unsigned, void *, void *, void *), void *);
    char *(*expanded_sql)(sqlite3_stmt *);
    const char *(*sql)(sqlite3_stmt *);
    int (*bind_text)(sqlite3_stmt *, int, const char *, int, void (*)(void *));
    int (*bind_text64)(sqlite3_stmt *, int, const char *, uint64_t, void (*)(void *), unsigned char);
    int (*bind_text16)(sqlite3_stmt *, int, const void *, int, void (*)(void *));
    sqlite3 *(*db_handle)(sqlite3_stmt *);
    const char *(*db_filename)(sqlite3 *, const char *);
    void (*free)(void *);
    int (*get_autocommit)(sqlite3 *);
};

/* SQLite has sqlite3_trace_v2 and sqlite3_expanded_sql since 3.14, unless it is built with SQLITE_OMIT_TRACE. */
static int can_record(const struct functions *sqlite) {
    return sqlite->trace_v2 && sqlite->expanded_sql && sqlite->sql && sqlite->db_handle && sqlite->db_filename &&
           sqlite->free && sqlite->get_autocommit;
}

/* The step that a thread is in; a function of the program may step other statements within it. */
struct step {
    const sqlite3_stmt *statement;
    int has_started; /* the statement, by this step */
    int has_run;     /* the same, or it ended by it: it is one of the recorded database */
    struct step *outer;
};
static __thread struct step *current;

/* The call of sqlite3_exec that a thread is in. A SQLite that is linked with -Bsymbolic-functions steps the statements
 * of such a call without calling our sqlite3_step. */
struct execution {
    const sqlite3 *database;
    const char *sql;       /* behind the statements that have started */
    const char *end;       /* without what may follow the last statement */
    const void *statement; /* the last one of the text, once it has started, unless its failure was seen */
    int was_open;          /* a transaction, when that statement started */
    struct execution *outer;
};
static __thread struct execution *executing;

/* The length of a text without white space and semicolons at its end. */
static size_t trimmed(const char *sql) {
    size_t length = strlen(sql);
    while (length > 0 && strchr(" \t\n\r\f;", sql[length - 1])) length--;
    return length;
}

/* A statement of the database has started; which one failed is known only of the last one of a text, because SQLite
 * may have refused what follows another one. Several statements may have the same text, so each is looked for behind
 * the ones before it. */
static void note_execution(const struct functions *sqlite, sqlite3 *database, const void *statement, const char *sql) {
    struct execution *own = executing;
    if (!own || own->database != database) return;
    size_t length = trimmed(sql);
    const char *found = own->sql < own->end ? memmem(own->sql, (size_t)(own->end - own->sql), sql, length) : NULL;
    if (found) own->sql = found + length;
    own->statement = found && own->sql == own->end ? statement : NULL;
    own->was_open = !sqlite->get_autocommit(database);
}

static int on_trace(unsigned event, void *context, void *subject, void *detail) {
    const struct functions *sqlite = context;
    if (event == TRACE_CLOSE) {
        emit(CLOSED, 0, subject, NULL, 0, NULL);
        return 0;
    }
    sqlite3 *database = sqlite->db_handle(subject);
    struct step *step = current && current->statement == subject ? current : NULL;
    if (step) step->has_run = 1;
    if (event == TRACE_PROFILE) {
        emit(ENDED, 0, database, subject, sqlite->get_autocommit(database) ? 0 : FLAG, NULL);
    } else if (event == TRACE_STMT && detail == (void *)sqlite->sql(subject)) {
        /* Another text is that of a trigger, or a statement within a statement, which run again by themselves. */
        if (step) step->has_started = 1;
        note_execution(sqlite, database, subject, detail);
        char *text = sqlite->expanded_sql(subject);
        emit(STARTED, 0, database, subject, text ? 0 : FLAG, text ? text : detail);
        sqlite->free(text);
    }
    return 0;
}

/* Functions that are kept for the rest of the process: those of each SQLite that is traced. */
enum { KEPT = 16 };
static struct functions kept_functions[KEPT];

static int is_ours(const void *context) {
    return (uintptr_t)context >= (uintptr_t)kept_functions && (uintptr_t)context < (uintptr_t)(kept_functions + KEPT);
}

/* NULL where there are too many SQLites. */
static const struct functions *lasting(const struct functions *sqlite) {
    static int is_ready[KEPT];
    static unsigned used;
    for (unsigned n = 0; n < KEPT; n++) {
        if (__atomic_load_n(&is_ready[n], __ATOMIC_ACQUIRE) && kept_functions[n].trace_v2 == sqlite->trace_v2)
            return &kept_functions[n];
    }
    unsigned number = __atomic_fetch_add(&used, 1, __ATOMIC_RELAXED);
    if (number >= KEPT) return NULL;
    kept_functions[number] = *sqlite;
    __atomic_store_n(&is_ready[number], 1, __ATOMIC_RELEASE);
    return &kept_functions[number];
}

/* Traces a connection, if it is one to the recorded database. */
static void watch(const struct functions *sqlite, sqlite3 *database) {
    if (limit == 0 || !database) return;
    if (!can_record(sqlite)) {
        emit(NOT_TRACED, 0, database, NULL, 0, NULL);
        return;
    }
    int kept = errno;
    const char *name = sqlite->db_filename(database, "main");
    struct stat own, wanted;
    int is_recorded = name && (strcmp(name, recorded) == 0 || (stat(name, &own) == 0 && stat(recorded, &wanted) == 0 &&
                                                              own.st_dev == wanted.st_dev && own.st_ino == wanted.st_ino));
    errno = kept;
    if (!is_recorded) {
        emit(OPENED_OTHER, 0, database, NULL, 0, name ? name : "");
        return;
    }
    sqlite = lasting(sqlite);
    int code = ERROR;
    if (sqlite) code = sqlite->trace_v2(database, TRACE_STMT | TRACE_PROFILE | TRACE_CLOSE, on_trace, (void *)sqlite);
    emit(code == OK ? OPENED : NOT_TRACED, code, database, NULL, 0, NULL);
}

/* The SQLite that a caller would have called without us. The linker looks into the program and what that is linked with
 * first, and then into the library that the caller is in and what that is linked with: so does this. */

/* Whether a function is one of this library. */
static int is_own(void *function) {
    Dl_info it, self;
    return dladdr(function, &it) && dladdr(&spare, &self) && it.dli_fbase == self.dli_fbase;
}

/* Takes the functions of a library; whether the wanted one is among them, which is the offset of its member. */
static int fill(struct functions *into, void *library, size_t wanted) {
    static const struct {
        const char *name;
        size_t offset;
    } names[] = {
        {"sqlite3_open", offsetof(struct functions, open)},
        {"sqlite3_open16", offsetof(struct functions, open16)},
        {"sqlite3_open_v2", offsetof(struct functions, open_v2)},
        {"sqlite3_step", offsetof(struct functions, step)},
        {"sqlite3_exec", offsetof(struct functions, exec)},
        {"sqlite3_bind_text", offsetof(struct functions, bind_text)},
        {"sqlite3_bind_text64", offsetof(struct functions, bind_text64)},
        {"sqlite3_bind_text16", offsetof(struct functions, bind_text16)},
        {"sqlite3_trace", offsetof(struct functions, trace)},
        {"sqlite3_trace_v2", offsetof(struct functions, trace_v2)},
        {"sqlite3_expanded_sql", offsetof(struct functions, expanded_sql)},
        {"sqlite3_sql", offsetof(struct functions, sql)},
        {"sqlite3_db_handle", offsetof(struct functions, db_handle)},
        {"sqlite3_db_filename", offsetof(struct functions, db_filename)},
        {"sqlite3_free", offsetof(struct functions, free)},
        {"sqlite3_get_autocommit", offsetof(struct functions, get_autocommit)},
    };
    int has_wanted = 0;
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        void *found = dlsym(library, names[n].name);
        if (found && is_own(found)) found = NULL;
        memcpy((char *)into + names[n].offset, &found, sizeof found);
        has_wanted |= names[n].offset == wanted && found;
    }
    dlerror(); /* a missing function is no error of the program's */
    return has_wanted;
}

static int fill_from(struct functions *into, const char *name, size_t wanted) {
    void *library = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
    if (library && fill(into, library, wanted)) return 1;
    if (library) dlclose(library);
    return 0;
}

/* The name of one of the loaded libraries that are called libsqlite3. */
struct loaded {
    size_t skipped;
    char name[PATH_MAX];
};

static int copy_name(struct dl_phdr_info *object, size_t size, void *context) {
    (void)size;
    struct loaded *into = context;
    const char *name = object->dlpi_name;
    if (!name || !strstr(name, "libsqlite3") || strlen(name) >= sizeof into->name) return 0;
    if (into->skipped > 0) {
        into->skipped--;
        return 0;
    }
    strcpy(into->name, name);
    return 1;
}

/* dl_iterate_phdr holds a lock that dlopen takes after another one, so that dlopen must wait until it has returned. */
static int fill_from_loaded(struct functions *into, size_t wanted) {
    for (size_t n = 0;; n++) {
        struct loaded library = {.skipped = n};
        if (!dl_iterate_phdr(copy_name, &library)) return 0;
        if (fill_from(into, library.name, wanted)) return 1;
    }
}

/* A place that calls a function of SQLite, with the functions of that SQLite. */
struct site {
    const void *caller;
    size_t wanted;
    struct functions functions;
};

enum { SITES = 128, NEAR = 8 };
static struct site pool[SITES];
static unsigned pool_used;
static struct site *sites[SITES];

/* 0 where no SQLite behind us has the wanted function. Found sites are kept: a step is called for each row. Two threads
 * may find the same one twice. */
static int behind(const void *caller, size_t wanted, struct functions *found) {
    size_t first = ((uintptr_t)caller >> 4) % SITES;
    for (size_t n = 0; n < NEAR; n++) {
        struct site *site = __atomic_load_n(&sites[(first + n) % SITES], __ATOMIC_ACQUIRE);
        if (site && site->caller == caller && site->wanted == wanted) {
            *found = site->functions;
            return 1;
        }
    }
    Dl_info info;
    int kept = errno;
    int is_found = fill(found, RTLD_NEXT, wanted) ||
                   (dladdr(caller, &info) && info.dli_fname && fill_from(found, info.dli_fname, wanted)) ||
                   fill_from_loaded(found, wanted);
    errno = kept;
    for (size_t n = 0; is_found && n < NEAR; n++) {
        struct site **place = &sites[(first + n) % SITES];
        if (__atomic_load_n(place, __ATOMIC_ACQUIRE)) continue;
        unsigned number = __atomic_fetch_add(&pool_used, 1, __ATOMIC_RELAXED);
        if (number >= SITES) break;
        struct site *expected = NULL, *site = &pool[number];
        *site = (struct site){caller, wanted, *found};
        if (__atomic_compare_exchange_n(place, &expected, site, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) break;
    }
    return is_found;
}

#define BEHIND(sqlite, function) behind(__builtin_return_address(0), offsetof(struct functions, function), &sqlite)

/* A weak reference to a function that no SQLite of the process has is resolved to ours all the same. */
static int not_found(sqlite3 **database) {
    if (database) *database = NULL;
    return ERROR;
}

static int opened(const struct functions *sqlite, int code, sqlite3 **database) {
    if (code == OK && database) watch(sqlite, *database);
    return code;
}

PUBLIC int sqlite3_open(const char *name, sqlite3 **database) {
    struct functions sqlite;
    if (!BEHIND(sqlite, open)) return not_found(database);
    return opened(&sqlite, sqlite.open(name, database), database);
}

PUBLIC int sqlite3_open16(const void *name, sqlite3 **database) {
    struct functions sqlite;
    if (!BEHIND(sqlite, open16)) return not_found(database);
    return opened(&sqlite, sqlite.open16(name, database), database);
}

PUBLIC int sqlite3_open_v2(const char *name, sqlite3 **database, int flags, const char *vfs) {
    struct functions sqlite;
    if (!BEHIND(sqlite, open_v2)) return not_found(database);
    return opened(&sqlite, sqlite.open_v2(name, database, flags, vfs), database);
}

/* Statements whose last step was refused with SQLITE_BUSY. The next step may go on where that one stopped, and SQLite
 * then reports neither start nor end. One that is forgotten because many wait at once counts as failed. */
enum { REFUSED = 64 };
static sqlite3_stmt *refused[REFUSED];
static unsigned refused_next, refused_ever;

static void refuse(sqlite3_stmt *statement) {
    unsigned number = __atomic_fetch_add(&refused_next, 1, __ATOMIC_RELAXED) % REFUSED;
    __atomic_store_n(&refused[number], statement, __ATOMIC_RELAXED);
    __atomic_store_n(&refused_ever, 1, __ATOMIC_RELAXED);
}

static int was_refused(sqlite3_stmt *statement) {
    if (!__atomic_load_n(&refused_ever, __ATOMIC_RELAXED)) return 0;
    for (size_t n = 0; n < REFUSED; n++) {
        sqlite3_stmt *expected = statement;
        if (__atomic_load_n(&refused[n], __ATOMIC_RELAXED) == statement &&
            __atomic_compare_exchange_n(&refused[n], &expected, NULL, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            return 1;
    }
    return 0;
}

PUBLIC int sqlite3_step(sqlite3_stmt *statement) {
    struct functions sqlite;
    if (!BEHIND(sqlite, step)) return ERROR;
    if (!statement || limit == 0 || !can_record(&sqlite)) return sqlite.step(statement);
    sqlite3 *database = sqlite.db_handle(statement);
    int was_open = database && !sqlite.get_autocommit(database);
    int may_resume = was_refused(statement);
    struct step step = {statement, 0, 0, current};
    current = &step;
    int code = sqlite.step(statement);
    current = step.outer;
    /* A statement of another database, or one that SQLite refused before it ran: what it did earlier has not failed. */
    if (!database || !(step.has_run || may_resume)) return code;
    if (code != ROW && code != DONE) {
        int is_rolled_back = was_open && sqlite.get_autocommit(database);
        emit(FAILED, code, database, statement, is_rolled_back ? FLAG : 0, NULL);
        if ((code & 0xff) == BUSY) refuse(statement);
        if (executing && executing->statement == statement) executing->statement = NULL;
    } else if (may_resume && !step.has_started) {
        emit(RESUMED, code, database, statement, sqlite.get_autocommit(database) ? 0 : FLAG, NULL);
    }
    return code;
}

PUBLIC int sqlite3_exec(sqlite3 *database, const char *sql, int (*callback)(void *, int, char **, char **),
                        void *context, char **message) {
    struct functions sqlite;
    if (!BEHIND(sqlite, exec)) return ERROR;
    if (!sql || limit == 0 || !can_record(&sqlite)) return sqlite.exec(database, sql, callback, context, message);
    struct execution own = {database, sql, sql + trimmed(sql), NULL, 0, executing};
    executing = &own;
    int code = sqlite.exec(database, sql, callback, context, message);
    executing = own.outer;
    /* SQLITE_ABORT: the program wants no more rows. */
    if (code != OK && code != ABORT && own.statement) {
        int is_rolled_back = own.was_open && sqlite.get_autocommit(database);
        emit(FAILED, code, database, own.statement, is_rolled_back ? FLAG : 0, NULL);
    }
    return code;
}

/* The text of a statement will end within a value. */
static void nul_bound(const struct functions *sqlite, sqlite3_stmt *statement) {
    if (statement && sqlite->db_handle) emit(NUL_BOUND, 0, sqlite->db_handle(statement), statement, 0, NULL);
}

/* A negative length is that up to the first NUL. */
PUBLIC int sqlite3_bind_text(sqlite3_stmt *statement, int number, const char *text, int bytes, void (*free)(void *)) {
    struct functions sqlite;
    if (!BEHIND(sqlite, bind_text)) return ERROR;
    if (limit != 0 && text && bytes > 0 && memchr(text, 0, (size_t)bytes)) nul_bound(&sqlite, statement);
    return sqlite.bind_text(statement, number, text, bytes, free);
}

PUBLIC int sqlite3_bind_text64(sqlite3_stmt *statement, int number, const char *text, uint64_t bytes,
                               void (*free)(void *), unsigned char encoding) {
    enum { UTF8 = 1 };
    struct functions sqlite;
    if (!BEHIND(sqlite, bind_text64)) return ERROR;
    if (limit != 0 && text && bytes <= INT32_MAX && encoding == UTF8 && memchr(text, 0, (size_t)bytes))
        nul_bound(&sqlite, statement);
    return sqlite.bind_text64(statement, number, text, bytes, free, encoding);
}

PUBLIC int sqlite3_bind_text16(sqlite3_stmt *statement, int number, const void *text, int bytes,
                               void (*free)(void *)) {
    struct functions sqlite;
    if (!BEHIND(sqlite, bind_text16)) return ERROR;
    int has_nul = 0;
    for (int at = 0; limit != 0 && text && at + 1 < bytes && !has_nul; at += 2)
        has_nul = ((const char *)text)[at] == 0 && ((const char *)text)[at + 1] == 0;
    if (has_nul) nul_bound(&sqlite, statement);
    return sqlite.bind_text16(statement, number, text, bytes, free);
}

/* A program that traces takes the place of our callback: from then on nothing is recorded of this connection. */
PUBLIC int sqlite3_trace_v2(sqlite3 *database, unsigned mask, int (*callback)(unsigned, void *, void *, void *),
                            void *context) {
    struct functions sqlite;
    if (!BEHIND(sqlite, trace_v2)) return ERROR;
    if (callback != on_trace) emit(TRACE_LOST, 0, database, NULL, 0, NULL);
    return sqlite.trace_v2(database, mask, callback, context);
}

/* The function before sqlite3_trace_v2 does so, too, sqlite3_profile does not. It returns the context of the last
 * callback: not ours. */
PUBLIC void *sqlite3_trace(sqlite3 *database, void (*callback)(void *, const char *), void *context) {
    struct functions sqlite;
    if (!BEHIND(sqlite, trace)) return NULL;
    emit(TRACE_LOST, 0, database, NULL, 0, NULL);
    void *last = sqlite.trace(database, callback, context);
    return is_ours(last) ? NULL : last;
}

/* Places in sqlite3_api_routines. */
enum { DB_HANDLE = 49, FREE = 58, GET_AUTOCOMMIT = 60, VERSION = 67, SQL = 153, DB_FILENAME = 180, AUTO_EXTENSION = 192,
       TRACE_V2 = 214, EXPANDED_SQL = 215 };
/* The first SQLite with sqlite3_trace_v2. */
enum { OLDEST = 3014000 };

/* Traces a connection of a SQLite that loads this file as an extension; a process may have several that do. */
static int on_open(sqlite3 *database, char **message, void *const *routines) {
    (void)message;
    struct functions sqlite = {
        .trace_v2 = (__typeof__(sqlite.trace_v2))routines[TRACE_V2],
        .expanded_sql = (__typeof__(sqlite.expanded_sql))routines[EXPANDED_SQL],
        .sql = (__typeof__(sqlite.sql))routines[SQL],
        .db_handle = (__typeof__(sqlite.db_handle))routines[DB_HANDLE],
        .db_filename = (__typeof__(sqlite.db_filename))routines[DB_FILENAME],
        .free = (__typeof__(sqlite.free))routines[FREE],
        .get_autocommit = (__typeof__(sqlite.get_autocommit))routines[GET_AUTOCOMMIT],
    };
    watch(&sqlite, database);
    return OK;
}

PUBLIC int sqlite3_flashwiserecorder_init(sqlite3 *database, char **message, void *const *routines) {
    if (((int (*)(void))routines[VERSION])() < OLDEST) return ERROR;
    on_open(database, message, routines);
    int code = ((int (*)(__typeof__(on_open) *))routines[AUTO_EXTENSION])(on_open);
    return code == OK ? OK_LOAD_PERMANENTLY : code;
}
