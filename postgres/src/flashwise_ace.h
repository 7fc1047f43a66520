/*-------------------------------------------------------------------------
 *
 * flashwise_ace.h
 *	  What the parts of flashwise_ace share.
 *
 *	  settings.c		the GUC variables
 *	  statistics.c		shared memory, counters, the functions of the view
 *	  clock_hand.c		where the clock hand is, who writes which buffer
 *	  write_back.c		one buffer: whether it is written, and how
 *	  worker.c			the pool of workers, a worker's life
 *	  module.c			what happens when the library is loaded
 *
 * The idea is that of ACE (T. I. Papon, M. Athanassoulis: ACEing the
 * Bufferpool Management Paradigm for Modern Storage Devices, ICDE 2023): an
 * SSD serves k_w writes together in the time of one.  The workers write
 * ahead of the clock hand rather than in place of the victim, so no backend
 * waits for them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FLASHWISE_ACE_H
#define FLASHWISE_ACE_H

#include "postgres.h"

#include "datatype/timestamp.h"
#include "portability/instr_time.h"

#if PG_VERSION_NUM < 150000 || PG_VERSION_NUM >= 190000
#error "flashwise_ace is for PostgreSQL 15 to 18"
#endif

/* The longest queue of writes that is of use to an SSD we know */
#define ACE_MAX_WORKERS		32

/* settings.c */
extern bool ace_enabled;
extern int	ace_workers;
extern int	ace_max_workers;
extern int	ace_lead;			/* buffers */
extern double ace_margin;		/* times write_latency */
extern double ace_write_latency;	/* ms */

extern void settings_define(void);
extern int	settings_pool_size(void);
extern uint32 settings_lead(void);

/* statistics.c */
typedef struct AceCounts
{
	uint64		written;
	uint64		skipped_clean;
	uint64		skipped_hot;
	uint64		skipped_pinned;
	uint64		skipped_locked;
	uint64		skipped_failed;
	uint64		late;
	uint64		write_us;
	uint64		busy_us;
} AceCounts;

typedef enum AceState
{
	ACE_STOPPED,				/* no process */
	ACE_ACTIVE,
	ACE_STANDBY,				/* disabled, or beyond flashwise_ace.workers */
} AceState;

extern void statistics_request(void);
extern void statistics_worker_started(int worker);
extern void statistics_set_state(AceState state);
extern void statistics_publish(AceCounts *counts);
extern void statistics_note_error(const char *message);

/* clock_hand.c */
typedef struct ClockHand
{
	uint64		position;		/* passes * NBuffers + buffer */
	double		speed;			/* buffers per microsecond */
	instr_time	measured_at;
	uint64		measured_position;
} ClockHand;

extern Size clock_hand_shmem_size(void);
extern void clock_hand_attach(void *shared, bool found);
extern void clock_hand_start(ClockHand *hand);
extern void clock_hand_read(ClockHand *hand);
extern uint64 frontier_advance(uint64 start, uint64 limit);
extern bool frontier_claim(uint64 limit, int *buf_id);
extern void frontier_forget(void);

/* write_back.c */
extern bool write_back(int buf_id, AceCounts *counts, uint64 *write_us);

/* worker.c */
extern void workers_register(void);

/* Microseconds from one time to another */
static inline uint64
elapsed_us(instr_time from, instr_time to)
{
	INSTR_TIME_SUBTRACT(to, from);
	return INSTR_TIME_GET_MICROSEC(to);
}

#endif							/* FLASHWISE_ACE_H */
