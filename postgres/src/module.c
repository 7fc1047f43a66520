/*-------------------------------------------------------------------------
 *
 * module.c
 *	  What happens when the library is loaded.
 *
 *-------------------------------------------------------------------------
 */
#include "flashwise_ace.h"

#include "fmgr.h"
#include "miscadmin.h"

#ifdef PG_MODULE_MAGIC_EXT
PG_MODULE_MAGIC_EXT(.name = "flashwise_ace", .version = "1.0");
#else
PG_MODULE_MAGIC;
#endif

PGDLLEXPORT void _PG_init(void);

/*
 * Workers, shared memory and settings exist only where the postmaster loads
 * the library.  A session that loads it for the SQL functions alone gets an
 * error from these.
 */
void
_PG_init(void)
{
	if (!process_shared_preload_libraries_in_progress)
		return;

	settings_define();

	/* pg_upgrade's servers are to do nothing of their own accord */
	if (IsBinaryUpgrade)
		return;

	statistics_request();
	workers_register();
}
