/*
** Makes flashwise the default VFS of SQLite's own test programs.
**
** SQLite is compiled with -DSQLITE_EXTRA_INIT=flashwise_default_vfs, which it then calls at the end of each
** sqlite3_initialize(); its tests shut it down and start it again often, and "unix" is the default after that. The VFS
** is in a library of its own, which FLASHWISE_LIBRARY names; without it these programs are as SQLite builds them. Its
** techniques are in FLASHWISE_SQLITE.
*/
#define SQLITE_CORE 1
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include "sqlite3ext.h"

typedef int (*init_function)(sqlite3 *, char **, const sqlite3_api_routines *);

int flashwise_default_vfs(const char *unused) {
  static sqlite3_api_routines routines;
  static init_function init;
  const char *path = getenv("FLASHWISE_LIBRARY");
  char *error = 0;
  int code;

  (void)unused;
  if (path == 0) return SQLITE_OK;
  if (init == 0) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == 0) {
      fprintf(stderr, "%s\n", dlerror());
      return SQLITE_ERROR;
    }
    *(void **)&init = dlsym(library, "sqlite3_flashwisesqlite_init");
    if (init == 0) return SQLITE_ERROR;
    routines.libversion_number = sqlite3_libversion_number;
    routines.malloc = sqlite3_malloc;
    routines.vfs_find = sqlite3_vfs_find;
    routines.vfs_register = sqlite3_vfs_register;
    routines.vfs_unregister = sqlite3_vfs_unregister;
    routines.log = sqlite3_log;
    routines.uri_parameter = sqlite3_uri_parameter;
  }
  code = init(0, &error, &routines);
  if (code != SQLITE_OK && code != SQLITE_OK_LOAD_PERMANENTLY) {
    fprintf(stderr, "%s\n", error ? error : "the VFS cannot be registered");
    return code;
  }
  return sqlite3_vfs_register(sqlite3_vfs_find("flashwise"), 1);
}
