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
int sqlite3_step(sqlite3_stmt *statement);

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

/* The functions of one SQLite. A process may have several: libsqlite3, and others within libraries of their own. */
struct functions {
    int (*open)(const char *, sqlite3 **);
    int (*open16)(const void *, sqlite3 **);
    int (*open_v2)(const char *, sqlite3 **, int, const char *);
    int (*step)(sqlite3_stmt *);
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

/* The functions of a SQLite for the rest of its life; NULL where there are too many SQLites. */
static const struct functions *lasting(const struct functions *sqlite) {
    enum { MOST = 16 };
    static struct functions kept[MOST];
    static int is_ready[MOST];
    static unsigned used;
    for (unsigned n = 0; n < MOST; n++) {
        if (__atomic_load_n(&is_ready[n], __ATOMIC_ACQUIRE) && kept[n].trace_v2 == sqlite->trace_v2) return &kept[n];
    }
    unsigned number = __atomic_fetch_add(&used, 1, __ATOMIC_RELAXED);
    if (number >= MOST) return NULL;
    kept[number] = *sqlite;
    __atomic_store_n(&is_ready[number], 1, __ATOMIC_RELEASE);
    return &kept[number];
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
    sqlite = lasting(sqlite);
    if (!sqlite) return;
    int code = sqlite->trace_v2(database, TRACE_STMT | TRACE_PROFILE | TRACE_CLOSE, on_trace, (void *)sqlite);
    if (code == OK) emit(OPENED, 0, database, NULL, 0, NULL);
}

/* The SQLite that a caller would have called without us. The linker looks into the program and what that is linked with
 * first, and then into the library that the caller is in and what that is linked with: so does this. */

static int fill(struct functions *into, void *library) {
    struct {
        const char *name;
        void *to;
    } wanted[] = {
        {"sqlite3_open", &into->open},
        {"sqlite3_open16", &into->open16},
        {"sqlite3_open_v2", &into->open_v2},
        {"sqlite3_step", &into->step},
        {"sqlite3_trace_v2", &into->trace_v2},
        {"sqlite3_expanded_sql", &into->expanded_sql},
        {"sqlite3_sql", &into->sql},
        {"sqlite3_db_handle", &into->db_handle},
        {"sqlite3_db_filename", &into->db_filename},
        {"sqlite3_free", &into->free},
        {"sqlite3_get_autocommit", &into->get_autocommit},
    };
    for (size_t n = 0; n < sizeof wanted / sizeof *wanted; n++) {
        void *found = dlsym(library, wanted[n].name);
        if (!found) return 0;
        memcpy(wanted[n].to, &found, sizeof found);
    }
    return into->step != sqlite3_step; /* not this library itself */
}

static int fill_from(struct functions *into, const char *name) {
    void *library = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
    return library && fill(into, library);
}

static int look_into(struct dl_phdr_info *object, size_t size, void *into) {
    (void)size;
    return object->dlpi_name && strstr(object->dlpi_name, "libsqlite3") && fill_from(into, object->dlpi_name);
}

/* A place that calls SQLite, with the functions of that. */
struct site {
    const void *caller;
    struct functions functions;
};

enum { SITES = 128, NEAR = 8 };
static struct site pool[SITES];
static unsigned pool_used;
static struct site *sites[SITES];

/* 0 where there is no SQLite behind us, which cannot be if the caller was linked. Found sites are kept: a step is called
 * for each row. Two threads may find the same one twice. */
static int behind(const void *caller, struct functions *found) {
    size_t first = ((uintptr_t)caller >> 4) % SITES;
    for (size_t n = 0; n < NEAR; n++) {
        struct site *site = __atomic_load_n(&sites[(first + n) % SITES], __ATOMIC_ACQUIRE);
        if (site && site->caller == caller) {
            *found = site->functions;
            return 1;
        }
    }
    Dl_info info;
    int kept = errno;
    int is_there = fill(found, RTLD_NEXT) ||
                   (dladdr(caller, &info) && info.dli_fname && fill_from(found, info.dli_fname)) ||
                   dl_iterate_phdr(look_into, found);
    errno = kept;
    for (size_t n = 0; is_there && n < NEAR; n++) {
        struct site **place = &sites[(first + n) % SITES];
        if (__atomic_load_n(place, __ATOMIC_ACQUIRE)) continue;
        unsigned number = __atomic_fetch_add(&pool_used, 1, __ATOMIC_RELAXED);
        if (number >= SITES) break;
        struct site *expected = NULL, *site = &pool[number];
        *site = (struct site){caller, *found};
        if (__atomic_compare_exchange_n(place, &expected, site, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) break;
    }
    return is_there;
}

#define BEHIND(sqlite) behind(__builtin_return_address(0), &sqlite)

static int opened(const struct functions *sqlite, int code, sqlite3 **database) {
    if (code == OK && database) watch(sqlite, *database);
    return code;
}

PUBLIC int sqlite3_open(const char *name, sqlite3 **database) {
    struct functions sqlite;
    return BEHIND(sqlite) ? opened(&sqlite, sqlite.open(name, database), database) : ERROR;
}

PUBLIC int sqlite3_open16(const void *name, sqlite3 **database) {
    struct functions sqlite;
    return BEHIND(sqlite) ? opened(&sqlite, sqlite.open16(name, database), database) : ERROR;
}

PUBLIC int sqlite3_open_v2(const char *name, sqlite3 **database, int flags, const char *vfs) {
    struct functions sqlite;
    return BEHIND(sqlite) ? opened(&sqlite, sqlite.open_v2(name, database, flags, vfs), database) : ERROR;
}

PUBLIC int sqlite3_step(sqlite3_stmt *statement) {
    struct functions sqlite;
    if (!BEHIND(sqlite)) return ERROR;
    if (!statement || limit == 0) return sqlite.step(statement);
    sqlite3 *database = sqlite.db_handle(statement);
    int was_open = database && !sqlite.get_autocommit(database);
    int code = sqlite.step(statement);
    if (code != ROW && code != DONE && database) {
        int is_rolled_back = was_open && sqlite.get_autocommit(database);
        emit(FAILED, code, database, statement, is_rolled_back ? FLAG : 0, NULL);
    }
    return code;
}

/* A program that traces takes the place of our callback: from then on nothing is recorded of this connection. */
PUBLIC int sqlite3_trace_v2(sqlite3 *database, unsigned mask, int (*callback)(unsigned, void *, void *, void *),
                            void *context) {
    struct functions sqlite;
    if (!BEHIND(sqlite)) return ERROR;
    if (callback != on_trace) emit(TRACE_LOST, 0, database, NULL, 0, NULL);
    return sqlite.trace_v2(database, mask, callback, context);
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
