//! Tables that leave by the Arrow PyCapsule protocol, so that every library of data frames reads them without a copy.

use crate::error::{InternalError, usage};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchIterator};
use arrow_schema::Schema;
use arrow_schema::ffi::FFI_ArrowSchema;
use fleetfoot_lab::report::parquet::batches;
use fleetfoot_lab::report::{flow_trace, table};
use fleetfoot_lab::result::Comparison;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::sync::Arc;

/// Columns and rows.
#[pyclass(frozen, module = "fleetfoot._native")]
#[derive(Debug)]
pub(crate) struct Table {
    schema: Arc<Schema>,
    batches: Vec<RecordBatch>,
}

impl Table {
    /// The table called `name` of `comparison`.
    pub(crate) fn of(comparison: &Comparison, name: &str) -> PyResult<Table> {
        let made = match name {
            "runs" => batches(table::runs(comparison)),
            "samples" => batches(table::samples(comparison)),
            "links" => batches(table::links(comparison)),
            "states" => batches(flow_trace::states(comparison)),
            "segments" => batches(flow_trace::segments(comparison)),
            other => {
                return Err(usage(format!(
                    "there is no table \"{other}\"; there are runs, samples, links, states, segments"
                )));
            }
        };
        let (schema, batches) = made.map_err(|error| InternalError::new_err(error.to_string()))?;
        Ok(Table { schema, batches })
    }
}

#[pymethods]
impl Table {
    /// Names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.schema
            .fields()
            .iter()
            .map(|field| field.name().clone())
            .collect()
    }

    fn __len__(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// The columns, by the protocol.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.schema.as_ref())
            .map_err(|error| InternalError::new_err(error.to_string()))?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// The rows, by the protocol. The schema is what it is: another one that is asked for is not made.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let rows = self.batches.clone().into_iter().map(Ok);
        let reader = RecordBatchIterator::new(rows, Arc::clone(&self.schema));
        let stream = FFI_ArrowArrayStream::new(Box::new(reader));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }
}
