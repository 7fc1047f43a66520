/*-------------------------------------------------------------------------
 *
 * worker.c
 *	  The pool of workers, and a worker's life.
 *
 * A worker is a background worker that is connected to no database.  The
 * connection is not for SQL: without it a process takes no part in
 * ProcSignalBarriers, and would keep files open that DROP DATABASE or ALTER
 * DATABASE SET TABLESPACE remove, and write to them.
 *
 * All workers are started with the server, so that the postmaster restarts
 * them after an error or a crash.  Those with a number of at least
 * flashwise_ace.workers wait for a reload of the configuration.
 *
 *-------------------------------------------------------------------------
 */
#include "flashwise_ace.h"

#include <setjmp.h>

#include "access/xact.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/bgwriter.h"
#include "postmaster/interrupt.h"
#include "storage/buf_internals.h"
#include "storage/bufmgr.h"
#include "storage/condition_variable.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/lwlock.h"
#include "storage/pmsignal.h"
#include "storage/sinval.h"
#include "storage/smgr.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/resowner.h"
#include "utils/wait_event.h"

#if PG_VERSION_NUM >= 170000
#define close_all_files()	smgrdestroyall()
#else
#define close_all_files()	smgrcloseall()
#endif

/* As the background writer after an error, since it is likely to recur */
#define RESTART_SECONDS		1

/*
 * How long a worker sleeps when nothing is left within the lead: a quarter
 * of the time in which the hand needs it up.  The shortest is what the hand
 * takes for 20 buffers at 100,000 evictions a second.  While the hand stands
 * still, each nap is twice as long as the one before; the longest of these
 * bounds what an idle worker costs: a wake-up took 22 to 34 us of processor
 * time (/proc/PID/schedstat of four workers of 15.18 over 60 s, two cores at
 * a load of 17), so once a second is 0.003 %.
 */
#define SHORTEST_NAP_US		200
#define LONGEST_NAP_US		100000
#define LONGEST_IDLE_NAP_US 1000000
#define NAPS_PER_LEAD		4

/* Buffers that are looked at before interrupts are handled */
#define SCAN_BUFFERS		256

/*
 * A write that takes this many times its latency on the idle drive has
 * waited for others.  The worker then pauses for the time that it waited, so
 * that the drive serves the backends' reads.
 */
#define SATURATION_FACTOR	3.0
#define LONGEST_PAUSE_US	10000

/* How often the counters of the cumulative statistics are sent */
#define REPORT_INTERVAL_US	1000000

PGDLLEXPORT void flashwise_ace_worker_main(Datum main_arg);

/* A worker's own state */
typedef struct AceWorker
{
	int			number;
	bool		is_active;
	ClockHand	hand;
	AceCounts	counts;
	uint64		slept_at;		/* position of the hand */
	double		idle_nap_us;	/* 0 while it moves */
	instr_time	awake_since;
	instr_time	reported_at;
} AceWorker;

typedef enum AceTurn
{
	ACE_WROTE,
	ACE_LOOKED,					/* at SCAN_BUFFERS buffers without writing */
	ACE_NOTHING_LEFT			/* within the lead */
} AceTurn;

void
workers_register(void)
{
	int			pool_size = settings_pool_size();

	if (pool_size > 0 && max_worker_processes < pool_size + max_parallel_workers)
		ereport(LOG,
				(errmsg("flashwise_ace takes %d of max_worker_processes = %d",
						pool_size, max_worker_processes),
				 errhint("Set max_worker_processes to at least %d, so that max_parallel_workers = %d are left for parallel queries.",
						 pool_size + max_parallel_workers, max_parallel_workers)));

	for (int i = 0; i < pool_size; i++)
	{
		BackgroundWorker worker = {0};

		snprintf(worker.bgw_name, BGW_MAXLEN, "flashwise_ace writer %d", i);
		snprintf(worker.bgw_type, BGW_MAXLEN, "flashwise_ace writer");
		worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
		/* On a standby, too: replay dirties and evicts buffers */
		worker.bgw_start_time = BgWorkerStart_ConsistentState;
		worker.bgw_restart_time = RESTART_SECONDS;
		snprintf(worker.bgw_library_name, BGW_MAXLEN, "flashwise_ace");
		snprintf(worker.bgw_function_name, BGW_MAXLEN, "flashwise_ace_worker_main");
		worker.bgw_main_arg = Int32GetDatum(i);
		RegisterBackgroundWorker(&worker);
	}
}

static uint32
wait_event(void)
{
#if PG_VERSION_NUM >= 170000
	static uint32 event = 0;

	if (event == 0)
		event = WaitEventExtensionNew("FlashwiseAceMain");
	return event;
#else
	return PG_WAIT_EXTENSION;
#endif
}

/* Adds what was done since the last call. */
static void
publish(AceWorker *worker)
{
	instr_time	now;

	INSTR_TIME_SET_CURRENT(now);
	worker->counts.busy_us += elapsed_us(worker->awake_since, now);
	worker->awake_since = now;
	statistics_publish(&worker->counts);
}

/*
 * Sleeps.  Latches wait for whole milliseconds; a shorter sleep ends with a
 * signal, or a moment after it.
 */
static void
nap(AceWorker *worker, double us)
{
	publish(worker);

	if (us < 1000)
	{
		pgstat_report_wait_start(wait_event());
		pg_usleep((long) us);
		pgstat_report_wait_end();
	}
	else
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 (long) (us / 1000), wait_event());

	INSTR_TIME_SET_CURRENT(worker->awake_since);
}

/* Sleeps until a signal comes. */
static void
stand_by(AceWorker *worker)
{
	publish(worker);
	(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_EXIT_ON_PM_DEATH, -1, wait_event());
	INSTR_TIME_SET_CURRENT(worker->awake_since);
}

static void
report_statistics(AceWorker *worker)
{
	instr_time	now;

	INSTR_TIME_SET_CURRENT(now);
	if (elapsed_us(worker->reported_at, now) < REPORT_INTERVAL_US)
		return;
	worker->reported_at = now;
	pgstat_report_stat(true);
}

static void
set_active(AceWorker *worker, bool is_active)
{
	if (worker->is_active == is_active)
		return;
	worker->is_active = is_active;
	statistics_set_state(is_active ? ACE_ACTIVE : ACE_STANDBY);
	if (is_active)
	{
		clock_hand_start(&worker->hand);
		frontier_forget();
	}
	else
	{
		close_all_files();
		pgstat_report_stat(true);
	}
}

static void
apply_settings(AceWorker *worker)
{
	set_active(worker, ace_enabled && worker->number < ace_workers);

	if (worker->number == 0 && ace_workers > settings_pool_size())
		ereport(LOG,
				(errmsg("flashwise_ace.workers = %d, but %d were started with the server",
						ace_workers, settings_pool_size()),
				 errhint("Restart the server, with a greater flashwise_ace.max_workers if it is set.")));
}

/* To be called while nothing is held: no pin, no lock. */
static void
handle_interrupts(AceWorker *worker)
{
	/* Barriers: closes the files of a database that is dropped or moved */
	CHECK_FOR_INTERRUPTS();

	/*
	 * Exit code 1, since a worker that exits with 0 is not restarted, and
	 * pg_terminate_backend() sends the same signal as the postmaster.
	 */
	if (ShutdownRequestPending || !PostmasterIsAlive())
		proc_exit(1);

	if (ConfigReloadPending)
	{
		ConfigReloadPending = false;
		ProcessConfigFile(PGC_SIGHUP);
		apply_settings(worker);
	}

	/* The queue of invalidations is not to wait for us */
	if (catchupInterruptPending)
	{
		MemoryContext context = CurrentMemoryContext;

		ProcessCatchupInterrupt();
		MemoryContextSwitchTo(context);
		CurrentResourceOwner = AuxProcessResourceOwner;
	}

	/*
	 * As the background writer does: a file that was dropped before the
	 * checkpoint may be removed, and its number used again, after it.
	 */
	if (FirstCallSinceLastCheckpoint())
		close_all_files();
}

/* Distance from the hand that it passes while a page is written. */
static uint64
margin(const ClockHand *hand, uint32 lead)
{
	double		buffers = hand->speed * ace_write_latency * 1000.0 * ace_margin;

	return (uint64) Min(buffers, lead / 2);
}

/* Looks for a dirty victim ahead of the hand, and writes it. */
static AceTurn
take_turn(AceWorker *worker, uint64 *write_us)
{
	uint32		lead = settings_lead();
	uint64		limit;
	int			buf_id;

	clock_hand_read(&worker->hand);
	limit = worker->hand.position + lead;
	worker->counts.late += frontier_advance(worker->hand.position + margin(&worker->hand, lead), limit);

	for (int i = 0; i < SCAN_BUFFERS; i++)
	{
		if (!frontier_claim(limit, &buf_id))
			return ACE_NOTHING_LEFT;
		if (write_back(buf_id, &worker->counts, write_us))
			return ACE_WROTE;
	}
	return ACE_LOOKED;
}

/* Leaves the drive to others if a write has waited for them. */
static void
back_off(AceWorker *worker, uint64 write_us)
{
	double		us = write_us - ace_write_latency * 1000.0 * SATURATION_FACTOR;

	if (ace_write_latency > 0 && us > 0)
		nap(worker, Min(us, LONGEST_PAUSE_US));
}

static void
sleep_until_hand_has_moved(AceWorker *worker)
{
	double		us = LONGEST_NAP_US;

	if (worker->hand.speed > 0)
		us = (double) settings_lead() / NAPS_PER_LEAD / worker->hand.speed;
	us = Max(SHORTEST_NAP_US, Min(us, LONGEST_NAP_US));

	if (worker->hand.position == worker->slept_at)
		worker->idle_nap_us = Min(2 * Max(worker->idle_nap_us, SHORTEST_NAP_US), LONGEST_IDLE_NAP_US);
	else
		worker->idle_nap_us = 0;
	worker->slept_at = worker->hand.position;

	nap(worker, Max(us, worker->idle_nap_us));
}

static void
run(AceWorker *worker)
{
	for (;;)
	{
		uint64		write_us = 0;

		ResetLatch(MyLatch);
		handle_interrupts(worker);

		if (!worker->is_active)
		{
			stand_by(worker);
			continue;
		}

		switch (take_turn(worker, &write_us))
		{
			case ACE_WROTE:
				publish(worker);
				report_statistics(worker);
				back_off(worker, write_us);
				break;
			case ACE_LOOKED:
				break;
			case ACE_NOTHING_LEFT:
				report_statistics(worker);
				sleep_until_hand_has_moved(worker);
				break;
		}
	}
}

/*
 * Releases all that a write may hold, in the order of the background writer,
 * so that nobody waits for the end of the process.
 */
static void
release_everything(void)
{
	LWLockReleaseAll();
	ConditionVariableCancelSleep();
#if PG_VERSION_NUM < 160000
	AbortBufferIO();
#endif
	UnlockBuffers();
	ReleaseAuxProcessResources(false);
}

void
flashwise_ace_worker_main(Datum main_arg)
{
	sigjmp_buf	local_sigjmp_buf;
	MemoryContext context;
	static AceWorker worker;

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
	/* There is no statement that could be cancelled */
	pqsignal(SIGINT, SIG_IGN);
	BackgroundWorkerUnblockSignals();

	BackgroundWorkerInitializeConnection(NULL, NULL, 0);

	/* Pins outside of a transaction need an owner */
	CreateAuxProcessResourceOwner();

	context = AllocSetContextCreate(TopMemoryContext, "flashwise_ace", ALLOCSET_DEFAULT_SIZES);
	MemoryContextSwitchTo(context);

	worker.number = DatumGetInt32(main_arg);
	INSTR_TIME_SET_CURRENT(worker.awake_since);
	worker.reported_at = worker.awake_since;
	statistics_worker_started(worker.number);

	/* An error ends the process; the postmaster starts another one */
	if (sigsetjmp(local_sigjmp_buf, 1) != 0)
	{
		ErrorData  *error;

		error_context_stack = NULL;
		HOLD_INTERRUPTS();
		EmitErrorReport();
		release_everything();

		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		FlushErrorState();
		statistics_note_error(error->message);
		statistics_publish(&worker.counts);
		proc_exit(1);
	}
	PG_exception_stack = &local_sigjmp_buf;

	apply_settings(&worker);
	run(&worker);
}
