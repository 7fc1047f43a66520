/*-------------------------------------------------------------------------
 *
 * settings.c
 *	  The GUC variables.
 *
 *-------------------------------------------------------------------------
 */
#include "flashwise_ace.h"

#include <limits.h>

#include "storage/bufmgr.h"
#include "utils/guc.h"

/*
 * One sixteenth of the pool: leads of 64 to 3,000 of 4,096 buffers differed
 * by less than the noise on a simulated P4510, so the lead only has to be
 * longer than what the hand does while the workers sleep.
 */
#define DEFAULT_LEAD_DIVISOR	16

/*
 * A lead of more than half of the pool writes buffers that are referenced
 * again before the hand comes.
 */
#define GREATEST_LEAD_DIVISOR	2

bool		ace_enabled = true;
int			ace_workers = 4;
int			ace_max_workers = -1;
int			ace_lead = 0;
double		ace_margin = 1.5;
double		ace_write_latency = 0.0;

/*
 * Workers that are started with the server.  The postmaster makes shared
 * memory anew after a crash, when a reload may have changed
 * flashwise_ace.workers, but it restarts those that were registered.
 */
static int	pool_size = 0;

void
settings_define(void)
{
	DefineCustomBoolVariable("flashwise_ace.enabled",
							 "Writes dirty buffers back ahead of the clock hand.",
							 "Off leaves all of it to the background writer, the backends and the checkpointer.",
							 &ace_enabled,
							 true,
							 PGC_SIGHUP,
							 0,
							 NULL, NULL, NULL);

	DefineCustomIntVariable("flashwise_ace.workers",
							"Number of buffers that are written together.",
							"The writes that the drive serves in parallel: k_w of its profile.",
							&ace_workers,
							4, 0, ACE_MAX_WORKERS,
							PGC_SIGHUP,
							0,
							NULL, NULL, NULL);

	DefineCustomIntVariable("flashwise_ace.max_workers",
							"Number of background workers that are started with the server.",
							"flashwise_ace.workers can be raised up to this without a restart; -1 is its value at the start. Each takes one of max_worker_processes.",
							&ace_max_workers,
							-1, -1, ACE_MAX_WORKERS,
							PGC_POSTMASTER,
							0,
							NULL, NULL, NULL);

	DefineCustomIntVariable("flashwise_ace.lead",
							"Number of buffers ahead of the clock hand within which dirty ones are written.",
							"0 is one sixteenth of shared_buffers; the greatest that has an effect is one half.",
							&ace_lead,
							0, 0, INT_MAX / 2,
							PGC_SIGHUP,
							GUC_UNIT_BLOCKS,
							NULL, NULL, NULL);

	DefineCustomRealVariable("flashwise_ace.margin",
							 "Distance from the clock hand that is left out, in write latencies.",
							 "A buffer that the hand reaches before it is written is of no use as a victim. Takes effect with flashwise_ace.write_latency.",
							 &ace_margin,
							 1.5, 0.0, 100.0,
							 PGC_SIGHUP,
							 0,
							 NULL, NULL, NULL);

	DefineCustomRealVariable("flashwise_ace.write_latency",
							 "Time that a write of one page takes on the idle drive.",
							 "From the drive's profile. A worker whose writes take much longer pauses: the drive is saturated. 0 is unknown: no margin, no pauses.",
							 &ace_write_latency,
							 0.0, 0.0, 1000.0,
							 PGC_SIGHUP,
							 GUC_UNIT_MS,
							 NULL, NULL, NULL);

	MarkGUCPrefixReserved("flashwise_ace");

	pool_size = ace_max_workers >= 0 ? ace_max_workers : ace_workers;
}

int
settings_pool_size(void)
{
	return pool_size;
}

/* Buffers ahead of the hand; at least 1. */
uint32
settings_lead(void)
{
	uint32		buffers = NBuffers;
	uint32		lead = ace_lead > 0 ? ace_lead : buffers / DEFAULT_LEAD_DIVISOR;

	return Max(1, Min(lead, buffers / GREATEST_LEAD_DIVISOR));
}
