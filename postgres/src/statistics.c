/*-------------------------------------------------------------------------
 *
 * statistics.c
 *	  Shared memory, the workers' counters, and the functions of the view.
 *
 *-------------------------------------------------------------------------
 */
#include "flashwise_ace.h"

#include "fmgr.h"
#include "funcapi.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "storage/spin.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#define MAX_ERROR_LENGTH	256
#define STAT_COLUMNS		16

/* What one worker did; its process alone adds to it. */
typedef struct AceWorkerStat
{
	slock_t		mutex;
	int			pid;			/* 0 if there is no process */
	AceState	state;
	AceCounts	counts;
	uint64		errors;
	TimestampTz last_error_at;
	char		last_error[MAX_ERROR_LENGTH];
	TimestampTz reset_at;
} AceWorkerStat;

typedef struct AceShared
{
	int			pool_size;
	AceWorkerStat workers[FLEXIBLE_ARRAY_MEMBER];
} AceShared;

PG_FUNCTION_INFO_V1(flashwise_ace_workers);
PG_FUNCTION_INFO_V1(flashwise_ace_reset);

static AceShared *shared = NULL;
/* In a worker: its own */
static AceWorkerStat *own = NULL;

static shmem_request_hook_type prev_shmem_request_hook = NULL;
static shmem_startup_hook_type prev_shmem_startup_hook = NULL;

static Size
shared_size(void)
{
	return add_size(offsetof(AceShared, workers),
					mul_size(settings_pool_size(), sizeof(AceWorkerStat)));
}

static void
shmem_request(void)
{
	if (prev_shmem_request_hook)
		prev_shmem_request_hook();

	RequestAddinShmemSpace(shared_size());
	RequestAddinShmemSpace(clock_hand_shmem_size());
}

static void
shmem_startup(void)
{
	bool		found;
	void	   *frontier;

	if (prev_shmem_startup_hook)
		prev_shmem_startup_hook();

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);

	frontier = ShmemInitStruct("flashwise_ace frontier", clock_hand_shmem_size(), &found);
	clock_hand_attach(frontier, found);

	shared = ShmemInitStruct("flashwise_ace workers", shared_size(), &found);
	if (!found)
	{
		TimestampTz now = GetCurrentTimestamp();

		memset(shared, 0, shared_size());
		shared->pool_size = settings_pool_size();
		for (int i = 0; i < shared->pool_size; i++)
		{
			SpinLockInit(&shared->workers[i].mutex);
			shared->workers[i].reset_at = now;
		}
	}

	LWLockRelease(AddinShmemInitLock);
}

/* Asks for shared memory; to be called when the library is preloaded. */
void
statistics_request(void)
{
	prev_shmem_request_hook = shmem_request_hook;
	shmem_request_hook = shmem_request;
	prev_shmem_startup_hook = shmem_startup_hook;
	shmem_startup_hook = shmem_startup;
}

static void
worker_stopped(int code, Datum arg)
{
	SpinLockAcquire(&own->mutex);
	own->pid = 0;
	own->state = ACE_STOPPED;
	SpinLockRelease(&own->mutex);
}

/* Makes this process the worker with this number. */
void
statistics_worker_started(int worker)
{
	Assert(worker >= 0 && worker < shared->pool_size);

	own = &shared->workers[worker];
	SpinLockAcquire(&own->mutex);
	own->pid = MyProcPid;
	own->state = ACE_STANDBY;
	SpinLockRelease(&own->mutex);
	on_shmem_exit(worker_stopped, (Datum) 0);
}

void
statistics_set_state(AceState state)
{
	SpinLockAcquire(&own->mutex);
	own->state = state;
	SpinLockRelease(&own->mutex);
}

/* Adds a worker's counts, and sets them to 0. */
void
statistics_publish(AceCounts *counts)
{
	SpinLockAcquire(&own->mutex);
	own->counts.written += counts->written;
	own->counts.skipped_clean += counts->skipped_clean;
	own->counts.skipped_hot += counts->skipped_hot;
	own->counts.skipped_pinned += counts->skipped_pinned;
	own->counts.skipped_locked += counts->skipped_locked;
	own->counts.skipped_failed += counts->skipped_failed;
	own->counts.late += counts->late;
	own->counts.write_us += counts->write_us;
	own->counts.busy_us += counts->busy_us;
	SpinLockRelease(&own->mutex);

	memset(counts, 0, sizeof(*counts));
}

void
statistics_note_error(const char *message)
{
	TimestampTz now = GetCurrentTimestamp();

	SpinLockAcquire(&own->mutex);
	own->errors++;
	own->last_error_at = now;
	strlcpy(own->last_error, message, MAX_ERROR_LENGTH);
	SpinLockRelease(&own->mutex);
}

static void
check_is_loaded(void)
{
	if (shared == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("flashwise_ace is not loaded"),
				 errhint("Add flashwise_ace to shared_preload_libraries and restart the server.")));
}

static const char *
state_name(AceState state)
{
	switch (state)
	{
		case ACE_STOPPED:
			return "stopped";
		case ACE_ACTIVE:
			return "active";
		case ACE_STANDBY:
			return "standby";
	}
	return "unknown";
}

/*
 * An error message as text of this database.  A worker has no database, so
 * it is in the encoding of the server's locale, and may be cut within a
 * character.
 */
static Datum
message_datum(char *message)
{
	int			length = strlen(message);
	int			valid = pg_encoding_verifymbstr(GetDatabaseEncoding(), message, length);

	if (length == MAX_ERROR_LENGTH - 1 && length - valid < pg_database_encoding_max_length())
		length = valid;
	for (int i = valid; i < length; i++)
	{
		if (IS_HIGHBIT_SET(message[i]))
			message[i] = '?';
	}
	return PointerGetDatum(cstring_to_text_with_len(message, length));
}

/* One row a worker. */
Datum
flashwise_ace_workers(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	TimestampTz now;

	check_is_loaded();
	InitMaterializedSRF(fcinfo, 0);
	now = GetCurrentTimestamp();

	for (int i = 0; i < shared->pool_size; i++)
	{
		AceWorkerStat *worker = &shared->workers[i];
		AceWorkerStat stat;
		Datum		values[STAT_COLUMNS] = {0};
		bool		nulls[STAT_COLUMNS] = {0};
		int			column = 0;
		double		us;

		SpinLockAcquire(&worker->mutex);
		stat = *worker;
		SpinLockRelease(&worker->mutex);

		values[column++] = Int32GetDatum(i);
		nulls[column] = stat.pid == 0;
		values[column++] = Int32GetDatum(stat.pid);
		values[column++] = CStringGetTextDatum(state_name(stat.state));
		values[column++] = Int64GetDatum((int64) stat.counts.written);
		values[column++] = Int64GetDatum((int64) stat.counts.skipped_clean);
		values[column++] = Int64GetDatum((int64) stat.counts.skipped_hot);
		values[column++] = Int64GetDatum((int64) stat.counts.skipped_pinned);
		values[column++] = Int64GetDatum((int64) stat.counts.skipped_locked);
		values[column++] = Int64GetDatum((int64) stat.counts.skipped_failed);
		values[column++] = Int64GetDatum((int64) stat.counts.late);
		values[column++] = Float8GetDatum(stat.counts.write_us / 1000.0);

		/* The clock may be set, and a turn may have started before the reset */
		us = (double) (now - stat.reset_at);
		nulls[column] = us <= 0;
		values[column++] = Float8GetDatum(us > 0 ? Min(stat.counts.busy_us / us, 1.0) : 0);

		values[column++] = Int64GetDatum((int64) stat.errors);
		nulls[column] = stat.last_error_at == 0;
		values[column++] = message_datum(stat.last_error);
		nulls[column] = stat.last_error_at == 0;
		values[column++] = TimestampTzGetDatum(stat.last_error_at);
		values[column++] = TimestampTzGetDatum(stat.reset_at);
		Assert(column == STAT_COLUMNS);

		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}

	return (Datum) 0;
}

/* Sets all counters to 0. */
Datum
flashwise_ace_reset(PG_FUNCTION_ARGS)
{
	TimestampTz now = GetCurrentTimestamp();

	check_is_loaded();

	for (int i = 0; i < shared->pool_size; i++)
	{
		AceWorkerStat *worker = &shared->workers[i];

		SpinLockAcquire(&worker->mutex);
		memset(&worker->counts, 0, sizeof(worker->counts));
		worker->errors = 0;
		worker->last_error_at = 0;
		worker->last_error[0] = '\0';
		worker->reset_at = now;
		SpinLockRelease(&worker->mutex);
	}

	PG_RETURN_VOID();
}
