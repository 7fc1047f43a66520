/*-------------------------------------------------------------------------
 *
 * clock_hand.c
 *	  Where the clock hand is, and who writes which buffer.
 *
 * Positions count buffers since the server was started: pass * NBuffers +
 * buffer.  The workers share one frontier, the next position that nobody
 * has looked at:
 *
 *		hand ... start ........ frontier ............. limit
 *			 margin    looked at        to be looked at
 *
 * A worker takes the position at the frontier and moves it by one.  If the
 * hand has come too near, the frontier jumps to start.
 *
 *-------------------------------------------------------------------------
 */
#include "flashwise_ace.h"

#include "port/atomics.h"
#include "storage/buf_internals.h"

/*
 * Over how long the speed of the hand is averaged: several times the pauses
 * of the workers, and short beside the bursts of a database's load.
 */
#define SPEED_WINDOW_US		20000.0
/* Shorter intervals are added up, since they hold only a buffer or two */
#define SPEED_INTERVAL_US	1000

/* In shared memory; 0 before the first position is known. */
typedef struct AceFrontier
{
	pg_atomic_uint64 next;
} AceFrontier;

static AceFrontier *frontier = NULL;

Size
clock_hand_shmem_size(void)
{
	return sizeof(AceFrontier);
}

void
clock_hand_attach(void *shared, bool found)
{
	frontier = shared;
	if (!found)
		pg_atomic_init_u64(&frontier->next, 0);
}

/*
 * The allocation counter that StrategySyncStart can return belongs to the
 * background writer: it would be reset.
 */
static uint64
read_position(void)
{
	uint32		passes;
	int			buffer = StrategySyncStart(&passes, NULL);

	return (uint64) passes * NBuffers + buffer;
}

void
clock_hand_start(ClockHand *hand)
{
	INSTR_TIME_SET_CURRENT(hand->measured_at);
	hand->position = hand->measured_position = read_position();
	hand->speed = 0;
}

/*
 * Reads the position, and averages the speed with weights that decay
 * exponentially.
 */
void
clock_hand_read(ClockHand *hand)
{
	instr_time	now;
	double		us;
	double		weight;

	INSTR_TIME_SET_CURRENT(now);
	hand->position = read_position();

	us = elapsed_us(hand->measured_at, now);
	if (us < SPEED_INTERVAL_US)
		return;

	/* The count of passes wraps at 2^32 */
	if (hand->position >= hand->measured_position)
	{
		weight = us / (us + SPEED_WINDOW_US);
		hand->speed += weight * ((hand->position - hand->measured_position) / us - hand->speed);
	}
	hand->measured_at = now;
	hand->measured_position = hand->position;
}

/*
 * Moves the frontier to start if it is not between start and limit.
 * Returns how many positions nobody has looked at because of that.
 *
 * A frontier beyond limit waits for the hand, unless it is beyond a whole
 * pass: then the count of passes has wrapped.
 */
uint64
frontier_advance(uint64 start, uint64 limit)
{
	uint64		next = pg_atomic_read_u64(&frontier->next);

	while (next < start || next > limit + NBuffers)
	{
		if (pg_atomic_compare_exchange_u64(&frontier->next, &next, start))
			return next != 0 && next < start ? Min(start - next, (uint64) NBuffers) : 0;
	}
	return 0;
}

/* Takes the next position below limit. */
bool
frontier_claim(uint64 limit, int *buf_id)
{
	uint64		next = pg_atomic_read_u64(&frontier->next);

	while (next < limit)
	{
		if (pg_atomic_compare_exchange_u64(&frontier->next, &next, next + 1))
		{
			*buf_id = (int) (next % NBuffers);
			return true;
		}
	}
	return false;
}

/* What the hand passes from now on has not been missed. */
void
frontier_forget(void)
{
	pg_atomic_write_u64(&frontier->next, 0);
}
