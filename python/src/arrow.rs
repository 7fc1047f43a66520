//! Tables in Arrow's C stream interface (<https://arrow.apache.org/docs/format/CStreamInterface.html>), handed to other
//! libraries in a PyCapsule.
//!
//! Nothing is copied on the way out: each exported array points into the buffers of a [`Batch`], which it keeps alive.
//! The structures are those of the specification, byte by byte. Arrow's own crates would do the same; they bring six
//! more crates into every build for the six kinds of columns below.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr;
use std::sync::Arc;

use flashwise_report::{Table, Values};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

/// A column's type and its values; a missing one is null, with any value behind it.
#[derive(Debug)]
pub(crate) enum Buffer {
    /// `int64`.
    I64(Vec<i64>),
    /// `uint64`.
    U64(Vec<u64>),
    /// `uint32`.
    U32(Vec<u32>),
    /// `float64`.
    F64(Vec<f64>),
    /// `bool`, a bit each.
    Bits(Vec<u8>),
    /// `utf8`: where each text ends, behind a 0, and all of them.
    Text(Vec<i32>, String),
}

impl Buffer {
    /// The type in Arrow's notation.
    fn format(&self) -> &'static CStr {
        match self {
            Self::I64(_) => c"l",
            Self::U64(_) => c"L",
            Self::U32(_) => c"I",
            Self::F64(_) => c"g",
            Self::Bits(_) => c"b",
            Self::Text(..) => c"u",
        }
    }

    /// The buffers behind the one that says what is missing.
    fn pointers(&self) -> Vec<*const c_void> {
        match self {
            Self::I64(values) => vec![values.as_ptr().cast()],
            Self::U64(values) => vec![values.as_ptr().cast()],
            Self::U32(values) => vec![values.as_ptr().cast()],
            Self::F64(values) => vec![values.as_ptr().cast()],
            Self::Bits(values) => vec![values.as_ptr().cast()],
            Self::Text(ends, text) => vec![ends.as_ptr().cast(), text.as_ptr().cast()],
        }
    }
}

/// A column of a batch.
#[derive(Debug)]
pub(crate) struct Column {
    values: Buffer,
    /// A bit for each value that is present; `None` where all are.
    validity: Option<Vec<u8>>,
    nulls: i64,
}

fn bits(values: impl Iterator<Item = bool>) -> Vec<u8> {
    let mut bits = Vec::new();
    for (place, value) in values.enumerate() {
        if place % 8 == 0 {
            bits.push(0);
        }
        if let Some(last) = bits.last_mut() {
            *last |= u8::from(value) << (place % 8);
        }
    }
    bits
}

impl Column {
    fn new<T>(values: &[Option<T>], buffer: Buffer) -> Self {
        let nulls = values.iter().filter(|value| value.is_none()).count() as i64;
        let validity = (nulls > 0).then(|| bits(values.iter().map(Option::is_some)));
        Self { values: buffer, validity, nulls }
    }

    /// Of `int64`.
    pub(crate) fn i64(values: &[Option<i64>]) -> Self {
        Self::new(values, Buffer::I64(values.iter().map(|value| value.unwrap_or_default()).collect()))
    }

    /// Of `uint64`.
    pub(crate) fn u64(values: &[Option<u64>]) -> Self {
        Self::new(values, Buffer::U64(values.iter().map(|value| value.unwrap_or_default()).collect()))
    }

    /// Of `uint32`.
    pub(crate) fn u32(values: &[Option<u32>]) -> Self {
        Self::new(values, Buffer::U32(values.iter().map(|value| value.unwrap_or_default()).collect()))
    }

    /// Of `float64`.
    pub(crate) fn f64(values: &[Option<f64>]) -> Self {
        Self::new(values, Buffer::F64(values.iter().map(|value| value.unwrap_or_default()).collect()))
    }

    /// Of `bool`.
    pub(crate) fn bool(values: &[Option<bool>]) -> Self {
        Self::new(values, Buffer::Bits(bits(values.iter().map(|value| value.unwrap_or_default()))))
    }

    /// Of `utf8`; at most 2 GiB of it, which a batch of these tables does not have.
    pub(crate) fn text<S: AsRef<str>>(values: &[Option<S>]) -> Self {
        let (mut ends, mut text) = (vec![0], String::new());
        for value in values {
            text.push_str(value.as_ref().map_or("", |value| value.as_ref()));
            ends.push(i32::try_from(text.len()).unwrap_or(i32::MAX));
        }
        Self::new(values, Buffer::Text(ends, text))
    }

    fn of(values: &Values) -> Self {
        match values {
            Values::Integers(values) => Self::i64(values),
            Values::Numbers(values) => Self::f64(values),
            Values::Booleans(values) => Self::bool(values),
            Values::Texts(values) => Self::text(values),
        }
    }
}

/// Rows of a table: columns of equal length.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) rows: usize,
    pub(crate) columns: Vec<Column>,
}

/// The columns' names and types.
pub(crate) type Fields = Vec<(CString, &'static CStr)>;

/// A table, batch by batch.
pub(crate) trait Batches: Send {
    /// Names and types of the columns, the same in each batch.
    fn fields(&self) -> &Fields;

    /// The next rows.
    fn next(&mut self) -> Result<Option<Arc<Batch>>, String>;
}

/// A table in memory, which other libraries read in place.
#[pyclass(frozen, module = "flashwise._native")]
pub(crate) struct Columns {
    fields: Arc<Fields>,
    batch: Arc<Batch>,
}

/// A name as C has it; what follows a zero byte is left out.
pub(crate) fn c_name(name: &str) -> CString {
    let bytes: Vec<u8> = name.bytes().take_while(|&byte| byte != 0).collect();
    CString::new(bytes).unwrap_or_default()
}

impl Columns {
    pub(crate) fn of(table: &Table) -> Self {
        let columns: Vec<Column> = table.columns.iter().map(|column| Column::of(&column.values)).collect();
        let name =
            |(column, values): (&flashwise_report::Column, &Column)| (c_name(&column.name), values.values.format());
        let fields = table.columns.iter().zip(&columns).map(name).collect();
        Self { fields: Arc::new(fields), batch: Arc::new(Batch { rows: table.rows(), columns }) }
    }
}

#[pymethods]
impl Columns {
    fn __len__(&self) -> usize {
        self.batch.rows
    }

    fn names(&self) -> Vec<String> {
        self.fields.iter().map(|(name, _)| name.to_string_lossy().into_owned()).collect()
    }

    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        capsule(py, Box::new(Whole { fields: Arc::clone(&self.fields), batch: Some(Arc::clone(&self.batch)) }))
    }
}

/// A table of one batch.
struct Whole {
    fields: Arc<Fields>,
    batch: Option<Arc<Batch>>,
}

impl Batches for Whole {
    fn fields(&self) -> &Fields {
        &self.fields
    }

    fn next(&mut self) -> Result<Option<Arc<Batch>>, String> {
        Ok(self.batch.take())
    }
}

/// The table as other libraries take it.
pub(crate) fn capsule(py: Python<'_>, batches: Box<dyn Batches>) -> PyResult<Bound<'_, PyCapsule>> {
    PyCapsule::new_with_value(py, ArrowArrayStream::new(batches), c"arrow_array_stream")
}

#[repr(C)]
struct ArrowSchema {
    format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    n_children: i64,
    children: *mut *mut ArrowSchema,
    dictionary: *mut ArrowSchema,
    release: Option<unsafe extern "C" fn(*mut ArrowSchema)>,
    private_data: *mut c_void,
}

#[repr(C)]
struct ArrowArray {
    length: i64,
    null_count: i64,
    offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: *mut *const c_void,
    children: *mut *mut ArrowArray,
    dictionary: *mut ArrowArray,
    release: Option<unsafe extern "C" fn(*mut ArrowArray)>,
    private_data: *mut c_void,
}

#[repr(C)]
struct ArrowArrayStream {
    get_schema: Option<unsafe extern "C" fn(*mut ArrowArrayStream, *mut ArrowSchema) -> c_int>,
    get_next: Option<unsafe extern "C" fn(*mut ArrowArrayStream, *mut ArrowArray) -> c_int>,
    get_last_error: Option<unsafe extern "C" fn(*mut ArrowArrayStream) -> *const c_char>,
    release: Option<unsafe extern "C" fn(*mut ArrowArrayStream)>,
    private_data: *mut c_void,
}

/// What a stream is read from, and what its last error said.
struct Source {
    batches: Box<dyn Batches>,
    error: CString,
}

/// A column may have missing values.
const NULLABLE: i64 = 2;
/// `EIO`.
const FAILED: c_int = 5;

/// What an exported array points to.
struct ArrayOwner {
    /// Its buffers are read in place.
    _batch: Arc<Batch>,
    buffers: Vec<*const c_void>,
    children: Vec<*mut ArrowArray>,
}

/// What an exported schema points to.
struct SchemaOwner {
    _name: CString,
    children: Vec<*mut ArrowSchema>,
}

// SAFETY: the one pointer is to a `Source`, which is `Send`, and the stream alone has it.
unsafe impl Send for ArrowArrayStream {}

impl ArrowArrayStream {
    fn new(batches: Box<dyn Batches>) -> Self {
        let source = Box::new(Source { batches, error: CString::default() });
        Self {
            get_schema: Some(get_schema),
            get_next: Some(get_next),
            get_last_error: Some(get_last_error),
            release: Some(release_stream),
            private_data: Box::into_raw(source).cast(),
        }
    }
}

impl Drop for ArrowArrayStream {
    /// A stream that nobody took from its capsule; one that was taken has no `release` left there.
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: `release` is `release_stream`, and it has not been called, or it would be none.
            unsafe { release(self) };
        }
    }
}

impl ArrowSchema {
    fn new(name: &CStr, format: &'static CStr, children: Vec<ArrowSchema>) -> Self {
        let name = name.to_owned();
        let children = children.into_iter().map(|child| Box::into_raw(Box::new(child))).collect();
        let mut owner = Box::new(SchemaOwner { _name: name, children });
        Self {
            format: format.as_ptr(),
            name: owner._name.as_ptr(),
            metadata: ptr::null(),
            flags: NULLABLE,
            n_children: owner.children.len() as i64,
            children: owner.children.as_mut_ptr(),
            dictionary: ptr::null_mut(),
            release: Some(release_schema),
            private_data: Box::into_raw(owner).cast(),
        }
    }
}

impl ArrowArray {
    fn new(batch: &Arc<Batch>, nulls: i64, buffers: Vec<*const c_void>, children: Vec<ArrowArray>) -> Self {
        let children = children.into_iter().map(|child| Box::into_raw(Box::new(child))).collect();
        let mut owner = Box::new(ArrayOwner { _batch: Arc::clone(batch), buffers, children });
        Self {
            length: batch.rows as i64,
            null_count: nulls,
            offset: 0,
            n_buffers: owner.buffers.len() as i64,
            n_children: owner.children.len() as i64,
            buffers: owner.buffers.as_mut_ptr(),
            children: owner.children.as_mut_ptr(),
            dictionary: ptr::null_mut(),
            release: Some(release_array),
            private_data: Box::into_raw(owner).cast(),
        }
    }

    /// A batch as a struct of its columns.
    fn of(batch: &Arc<Batch>) -> Self {
        let child = |column: &Column| {
            let validity = column.validity.as_ref().map_or(ptr::null(), |bits| bits.as_ptr().cast());
            let buffers = std::iter::once(validity).chain(column.values.pointers()).collect();
            Self::new(batch, column.nulls, buffers, Vec::new())
        };
        let children = batch.columns.iter().map(child).collect();
        Self::new(batch, 0, vec![ptr::null()], children)
    }

    /// The end of a stream.
    fn end() -> Self {
        Self {
            length: 0,
            null_count: 0,
            offset: 0,
            n_buffers: 0,
            n_children: 0,
            buffers: ptr::null_mut(),
            children: ptr::null_mut(),
            dictionary: ptr::null_mut(),
            release: None,
            private_data: ptr::null_mut(),
        }
    }
}

unsafe extern "C" fn get_schema(stream: *mut ArrowArrayStream, out: *mut ArrowSchema) -> c_int {
    // SAFETY: the consumer calls this with the stream, whose private data is a `Source` until its release.
    let source = unsafe { &*(*stream).private_data.cast::<Source>() };
    let fields = source.batches.fields();
    let children = fields.iter().map(|(name, format)| ArrowSchema::new(name, format, Vec::new())).collect();
    // SAFETY: `out` points to memory for a schema, whose old content is none.
    unsafe { out.write(ArrowSchema::new(c"", c"+s", children)) };
    0
}

unsafe extern "C" fn get_next(stream: *mut ArrowArrayStream, out: *mut ArrowArray) -> c_int {
    // SAFETY: as in `get_schema`; a stream is used by one thread at a time.
    let source = unsafe { &mut *(*stream).private_data.cast::<Source>() };
    // A panic must not cross the boundary of C.
    let next = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| source.batches.next()));
    let array = match next.unwrap_or_else(|_| Err("reading the table failed".to_owned())) {
        Ok(Some(batch)) => ArrowArray::of(&batch),
        Ok(None) => ArrowArray::end(),
        Err(words) => {
            source.error = c_name(&words);
            return FAILED;
        }
    };
    // SAFETY: `out` points to memory for an array, whose old content is none.
    unsafe { out.write(array) };
    0
}

unsafe extern "C" fn get_last_error(stream: *mut ArrowArrayStream) -> *const c_char {
    // SAFETY: as in `get_schema`; the text stays until the next call.
    unsafe { (*(*stream).private_data.cast::<Source>()).error.as_ptr() }
}

unsafe extern "C" fn release_stream(stream: *mut ArrowArrayStream) {
    // SAFETY: called once with a stream of ours, whose private data came from `Box::into_raw`.
    unsafe {
        drop(Box::from_raw((*stream).private_data.cast::<Source>()));
        (*stream).release = None;
        (*stream).private_data = ptr::null_mut();
    }
}

unsafe extern "C" fn release_schema(schema: *mut ArrowSchema) {
    // SAFETY: called once with a schema of ours, whose private data and children came from `Box::into_raw`. A child
    // that the consumer has moved away has no `release` left here.
    unsafe {
        let owner = Box::from_raw((*schema).private_data.cast::<SchemaOwner>());
        for &child in &owner.children {
            if let Some(release) = (*child).release {
                release(child);
            }
            drop(Box::from_raw(child));
        }
        (*schema).release = None;
    }
}

unsafe extern "C" fn release_array(array: *mut ArrowArray) {
    // SAFETY: as in `release_schema`.
    unsafe {
        let owner = Box::from_raw((*array).private_data.cast::<ArrayOwner>());
        for &child in &owner.children {
            if let Some(release) = (*child).release {
                release(child);
            }
            drop(Box::from_raw(child));
        }
        (*array).release = None;
    }
}
