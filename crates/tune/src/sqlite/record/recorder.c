/* Records the statements that a program runs on one SQLite database, into a file of events.
 *
 * Preloaded (LD_PRELOAD), it stands before the functions of libsqlite3 that open a database, and sets a trace callback
 * on each connection to the recorded one (sqlite3_trace_v2). SQLite itself then reports each statement as it starts,
 * with its values in place of the parameters (sqlite3_expanded_sql), and as it ends. sqlite3_step is stood before only
 * to learn which statements fail. A program that is linked with a SQLite of its own can load this file as an extension
 * instead (sqlite3_flashwiserecorder_init); then failures are not seen.
 *
 * The program is not to notice: errno is kept, no memory is allocated here, and the file of events is opened for each
 * event, because a program may close descriptors that it did not open. O_APPEND keeps events of several threads and
 * processes whole. Nothing is written beyond a limit.
 *
 * It is C because it stands in a foreign process, with SQLite's names: no runtime, no unwinding, nothing to initialise.
 *
 * Source: SQLite's "C-language Interface Specification" on sqlite3_trace_v2, and sqlite3ext.h; ld.so(8); dlsym(3).
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

typedef struct sqlite3 sqlite3;
typedef struct sqlite3_stmt sqlite3_stmt;

#define PUBLIC __attribute__((visibility("default")))

/* Of SQLite's result codes and trace events. */
enum { OK = 0, ERROR = 1, ROW = 100, DONE = 101, OK_LOAD_PERMANENTLY = 256 };
enum { TRACE_STMT = 1, TRACE_PROFILE = 2, TRACE_CLOSE = 8 };

/* Of the events; record/events.rs has the same. */
enum { LOADED = 1, OPENED, OPENED_OTHER, STARTED, ENDED, FAILED, CLOSED, TRACE_LOST };
/* STARTED: the values are missing. FAILED: the transaction was rolled back with it. */
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

static void emit(uint32_t kind, int code, const void *database, const void *statement, uint64_t flags,
                 const char *text) {
    if (limit == 0) return;
    int kept = errno;
    int file = open(events, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
    struct stat found;
    size_t length = text ? strlen(text) : 0;
    if (file >= 0 && fstat(file, &found) == 0 && S_ISREG(found.st_mode) && (uint64_t)found.st_size < limit &&
        length < limit) {
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
        ssize_t written = writev(file, parts, length ? 2 : 1);
        (void)written; /* a full disk: the reader stops at an event that is cut */
    }
    if (file >= 0) close(file);
    errno = kept;
}

/* One variable of the environment, where it fits. */
static int copy(char *to, const char *name) {
    const char *value = getenv(name);
    if (!value || strlen(value) >= PATH_MAX) return 0;
    strcpy(to, value);
    return 1;
}

__attribute__((constructor)) static void load(void) {
    const char *most = getenv("FLASHWISE_RECORD_LIMIT");
    if (most && copy(events, "FLASHWISE_RECORD_EVENTS") && copy(recorded, "FLASHWISE_RECORD_DATABASE")) {
        /* Texts are counted with 32 bits. */
        limit = strtoull(most, NULL, 10);
        if (limit > INT32_MAX) limit = INT32_MAX;
        emit(LOADED, 0, NULL, NULL, 0, NULL);
    }
}

/* SQLite's functions that are called here. */
struct functions {
    int (*trace_v2)(sqlite3 *, unsigned, int (*)(unsigned, void *, void *, void *), void *);
    char *(*expanded_sql)(sqlite3_stmt *);
    const char *(*sql)(sqlite3_stmt *);
    sqlite3 *(*db_handle)(sqlite3_stmt *);
    const char *(*db_filename)(sqlite3 *, const char *);
    void (*free)(void *);
    int (*get_autocommit)(sqlite3 *);
};

static int on_trace(unsigned event, void *context, void *subject, void *detail) {
    const struct functions *sqlite = context;
    if (event == TRACE_CLOSE) {
        emit(CLOSED, 0, subject, NULL, 0, NULL);
        return 0;
    }
    sqlite3 *database = sqlite->db_handle(subject);
    if (event == TRACE_PROFILE) {
        emit(ENDED, 0, database, subject, 0, NULL);
    } else if (event == TRACE_STMT && detail == (void *)sqlite->sql(subject)) {
        /* Otherwise a trigger, or a statement within a statement, which run again by themselves. */
        char *text = sqlite->expanded_sql(subject);
        emit(STARTED, 0, database, subject, text ? 0 : FLAG, text ? text : detail);
        sqlite->free(text);
    }
    return 0;
}

/* Traces a connection, if it is one to the recorded database. */
static void watch(const struct functions *sqlite, sqlite3 *database) {
    if (limit == 0 || !database) return;
    int kept = errno;
    const char *name = sqlite->db_filename(database, "main");
    struct stat own, wanted;
    int is_recorded = name && (strcmp(name, recorded) == 0 || (stat(name, &own) == 0 && stat(recorded, &wanted) == 0 &&
                                                              own.st_dev == wanted.st_dev && own.st_ino == wanted.st_ino));
    errno = kept;
    if (!is_recorded) {
        if (name && *name) emit(OPENED_OTHER, 0, database, NULL, 0, name);
        return;
    }
    int code = sqlite->trace_v2(database, TRACE_STMT | TRACE_PROFILE | TRACE_CLOSE, on_trace, (void *)sqlite);
    if (code == OK) emit(OPENED, 0, database, NULL, 0, NULL);
}

/* Where a search through loaded objects stands. */
struct search {
    const char *name;
    void *found;
};

/* A library with "sqlite" in its name that was loaded for one other object only (RTLD_LOCAL), as Python does it. */
static int look_into(struct dl_phdr_info *object, size_t size, void *context) {
    (void)size;
    struct search *search = context;
    if (!object->dlpi_name || !strstr(object->dlpi_name, "libsqlite3")) return 0;
    void *library = dlopen(object->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
    if (library) search->found = dlsym(library, search->name);
    return search->found != NULL;
}

/* The function of libsqlite3 that this library stands before. */
static void *behind(const char *name) {
    struct search search = {name, dlsym(RTLD_NEXT, name)};
    if (!search.found) dl_iterate_phdr(look_into, &search);
    return search.found;
}

/* Looked up at the first call; two threads find the same. */
#define NEXT(function) \
    static __typeof__(&function) next_; \
    __typeof__(&function) next = __atomic_load_n(&next_, __ATOMIC_ACQUIRE); \
    if (!next) { \
        next = (__typeof__(&function))behind(#function); \
        __atomic_store_n(&next_, next, __ATOMIC_RELEASE); \
    }

static struct functions of_library;
static int is_known; /* 0: not yet; 1: all of them are there; 2: they are not */

static const struct functions *library(void) {
    int known = __atomic_load_n(&is_known, __ATOMIC_ACQUIRE);
    if (known == 0) {
        struct functions found = {
            .trace_v2 = (__typeof__(found.trace_v2))behind("sqlite3_trace_v2"),
            .expanded_sql = (__typeof__(found.expanded_sql))behind("sqlite3_expanded_sql"),
            .sql = (__typeof__(found.sql))behind("sqlite3_sql"),
            .db_handle = (__typeof__(found.db_handle))behind("sqlite3_db_handle"),
            .db_filename = (__typeof__(found.db_filename))behind("sqlite3_db_filename"),
            .free = (__typeof__(found.free))behind("sqlite3_free"),
            .get_autocommit = (__typeof__(found.get_autocommit))behind("sqlite3_get_autocommit"),
        };
        known = found.trace_v2 && found.expanded_sql && found.sql && found.db_handle && found.db_filename &&
                        found.free && found.get_autocommit
                    ? 1
                    : 2;
        if (known == 1) of_library = found;
        __atomic_store_n(&is_known, known, __ATOMIC_RELEASE);
    }
    return known == 1 ? &of_library : NULL;
}

static int opened(int code, sqlite3 **database) {
    const struct functions *sqlite = code == OK && database ? library() : NULL;
    if (sqlite) watch(sqlite, *database);
    return code;
}

PUBLIC int sqlite3_open(const char *name, sqlite3 **database) {
    NEXT(sqlite3_open)
    return next ? opened(next(name, database), database) : ERROR;
}

PUBLIC int sqlite3_open16(const void *name, sqlite3 **database) {
    NEXT(sqlite3_open16)
    return next ? opened(next(name, database), database) : ERROR;
}

PUBLIC int sqlite3_open_v2(const char *name, sqlite3 **database, int flags, const char *vfs) {
    NEXT(sqlite3_open_v2)
    return next ? opened(next(name, database, flags, vfs), database) : ERROR;
}

PUBLIC int sqlite3_step(sqlite3_stmt *statement) {
    NEXT(sqlite3_step)
    if (!next) return ERROR;
    const struct functions *sqlite = statement && limit ? library() : NULL;
    if (!sqlite) return next(statement);
    sqlite3 *database = sqlite->db_handle(statement);
    int was_open = database && !sqlite->get_autocommit(database);
    int code = next(statement);
    if (code != ROW && code != DONE && database) {
        int is_rolled_back = was_open && sqlite->get_autocommit(database);
        emit(FAILED, code, database, statement, is_rolled_back ? FLAG : 0, NULL);
    }
    return code;
}

/* A program that traces takes the place of our callback: from then on nothing is recorded of this connection. */
PUBLIC int sqlite3_trace_v2(sqlite3 *database, unsigned events_, int (*callback)(unsigned, void *, void *, void *),
                            void *context) {
    NEXT(sqlite3_trace_v2)
    if (!next) return ERROR;
    if (callback != on_trace) emit(TRACE_LOST, 0, database, NULL, 0, NULL);
    return next(database, events_, callback, context);
}

/* Of a SQLite that loads this file as an extension. */
static struct functions of_loader;

/* Places in sqlite3_api_routines. */
enum { DB_HANDLE = 49, FREE = 58, GET_AUTOCOMMIT = 60, VERSION = 67, SQL = 153, DB_FILENAME = 180, AUTO_EXTENSION = 192,
       TRACE_V2 = 214, EXPANDED_SQL = 215 };
/* The first SQLite with sqlite3_trace_v2. */
enum { OLDEST = 3014000 };

static int on_open(sqlite3 *database, char **message, const void *routines) {
    (void)message, (void)routines;
    watch(&of_loader, database);
    return OK;
}

PUBLIC int sqlite3_flashwiserecorder_init(sqlite3 *database, char **message, void *const *routines) {
    (void)message;
    if (((int (*)(void))routines[VERSION])() < OLDEST) return ERROR;
    of_loader = (struct functions){
        .trace_v2 = (__typeof__(of_loader.trace_v2))routines[TRACE_V2],
        .expanded_sql = (__typeof__(of_loader.expanded_sql))routines[EXPANDED_SQL],
        .sql = (__typeof__(of_loader.sql))routines[SQL],
        .db_handle = (__typeof__(of_loader.db_handle))routines[DB_HANDLE],
        .db_filename = (__typeof__(of_loader.db_filename))routines[DB_FILENAME],
        .free = (__typeof__(of_loader.free))routines[FREE],
        .get_autocommit = (__typeof__(of_loader.get_autocommit))routines[GET_AUTOCOMMIT],
    };
    watch(&of_loader, database);
    int code = ((int (*)(int (*)(sqlite3 *, char **, const void *)))routines[AUTO_EXTENSION])(on_open);
    return code == OK ? OK_LOAD_PERMANENTLY : code;
}
