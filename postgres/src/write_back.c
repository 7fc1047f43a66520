/*-------------------------------------------------------------------------
 *
 * write_back.c
 *	  One buffer: whether it is written, and how.
 *
 * FlushOneBuffer() does what the background writer and an eviction do: it
 * flushes the WAL up to the page's LSN, computes the checksum on a copy,
 * writes, and registers the file for the next checkpoint's fsync.  Here are
 * only the steps before and after it.
 *
 *-------------------------------------------------------------------------
 */
#include "flashwise_ace.h"

#include "access/xlog.h"
#include "executor/instrument.h"
#include "storage/buf_internals.h"
#include "storage/bufmgr.h"

#if PG_VERSION_NUM >= 160000
#define tag_locator(tag)	BufTagGetRelFileLocator(&(tag))
#define tag_fork(tag)		BufTagGetForkNum(&(tag))
#define schedule_writeback(tag) \
	ScheduleBufferTagForWriteback(&BackendWritebackContext, IOCONTEXT_NORMAL, &(tag))
#else
#define tag_locator(tag)	((tag).rnode)
#define tag_fork(tag)		((tag).forkNum)
#define schedule_writeback(tag) \
	ScheduleBufferTagForWriteback(&BackendWritebackContext, &(tag))
#endif

/*
 * Whether a buffer in this state is a victim when the hand comes and has to
 * be written before; counts why not.
 *
 * A buffer whose usage count is above 0 survives the hand's next visit.  One
 * whose last write failed is left to the backends and the checkpointer,
 * which report the error to somebody.
 */
static bool
is_dirty_victim(uint32 state, AceCounts *counts)
{
	if ((state & (BM_VALID | BM_DIRTY)) != (BM_VALID | BM_DIRTY))
		counts->skipped_clean++;
	else if (BUF_STATE_GET_REFCOUNT(state) != 0)
		counts->skipped_pinned++;
	else if (BUF_STATE_GET_USAGECOUNT(state) != 0)
		counts->skipped_hot++;
	else if (state & BM_IO_ERROR)
		counts->skipped_failed++;
	else
		return true;
	return false;
}

/*
 * Writes a buffer back if it is a dirty victim.  Returns whether it was
 * written; then write_us is how long the drive took, or 0 if the WAL had to
 * be flushed first.
 *
 * Nobody waits for a worker longer than for one write: the content lock is
 * taken only if it is free, and interrupts are handled between buffers, when
 * nothing is held.
 */
bool
write_back(int buf_id, AceCounts *counts, uint64 *write_us)
{
	BufferDesc *desc = GetBufferDescriptor(buf_id);
	LWLock	   *content_lock = BufferDescriptorGetContentLock(desc);
	Buffer		buffer = BufferDescriptorGetBuffer(desc);
	BufferTag	tag;
	uint32		state;
	int64		written_before;
	bool		flushes_wal;
	instr_time	from;
	instr_time	to;
	uint64		us;

	/* Without the header's lock: most buffers are clean or hot */
	if (!is_dirty_victim(pg_atomic_read_u32(&desc->state), counts))
		return false;

	state = LockBufHdr(desc);
	tag = desc->tag;
	UnlockBufHdr(desc, state);
	if (!is_dirty_victim(state, counts))
		return false;

	/*
	 * Pins it unless it holds another page by now.  Unlike ReadBuffer() this
	 * leaves the usage count alone, because we hold no pin yet.
	 */
	if (!ReadRecentBuffer(tag_locator(tag), tag_fork(tag), tag.blockNum, buffer))
	{
		counts->skipped_clean++;
		return false;
	}

	if (!LWLockConditionalAcquire(content_lock, LW_SHARED))
	{
		ReleaseBuffer(buffer);
		counts->skipped_locked++;
		return false;
	}

	flushes_wal = BufferIsPermanent(buffer) && XLogNeedsFlush(BufferGetLSNAtomic(buffer));

	/* It does nothing if somebody else has written the page meanwhile */
	written_before = pgBufferUsage.shared_blks_written;
	INSTR_TIME_SET_CURRENT(from);
	FlushOneBuffer(buffer);
	INSTR_TIME_SET_CURRENT(to);

	LWLockRelease(content_lock);
	ReleaseBuffer(buffer);

	if (pgBufferUsage.shared_blks_written == written_before)
	{
		counts->skipped_clean++;
		return false;
	}

	/* As a backend does after an eviction: backend_flush_after */
	schedule_writeback(tag);

	us = elapsed_us(from, to);
	counts->written++;
	counts->write_us += us;
	*write_us = flushes_wal ? 0 : us;
	return true;
}
