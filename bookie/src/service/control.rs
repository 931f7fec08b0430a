//! The control service: identity gate, control queue, then one file per call.

use std::sync::Arc;

use tidemill_proto::{
    bookie::{
        Code, FenceRequest, FenceResponse, FenceResult, GetInfoRequest, GetInfoResponse, ListLedgersRequest,
        ListLedgersResponse, ListRangesRequest, ListRangesResponse, PingRequest, PingResponse,
        ReadLacRequest, ReadLacResponse, RecoveryAddRequest, RecoveryAddResponse, SetReadOnlyRequest,
        SetReadOnlyResponse, WriteLacRequest, WriteLacResponse, bookie_control_server::BookieControl,
    },
    convert::{self, Details},
};
use tidemill_types::ErrorCode;
use tokio::sync::OwnedSemaphorePermit;
use tonic::{Request, Response, Status};

use super::{fence, info, lac, list, recovery_add};
use crate::shared::Core;

/// The delay that is named when the control queue is full, ms.
const RETRY_MS: u64 = 50;

/// Everything that must not wait behind adds.
#[derive(Clone, Debug)]
pub(crate) struct ControlService {
    core: Arc<Core>,
}

impl ControlService {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self { core }
    }

    /// A place in the control queue, or the answer that it is full.
    fn place(&self) -> Result<OwnedSemaphorePermit, Status> {
        self.core.controls.clone().try_acquire_owned().map_err(|_| {
            self.core.counters.overloaded.inc();
            convert::status(
                ErrorCode::Overloaded,
                "the control queue is full",
                Details { retry_after_ms: Some(RETRY_MS), ..Details::default() },
            )
        })
    }
}

#[tonic::async_trait]
impl BookieControl for ControlService {
    async fn fence(&self, request: Request<FenceRequest>) -> Result<Response<FenceResponse>, Status> {
        let _place = self.place()?;
        let r = request.into_inner();
        let too_many = r.ledgers.len() > fence::MAX_LEDGERS;
        let gate = self.core.gate(r.identity.as_ref());
        let results = match gate {
            Ok(_) if too_many => {
                return Err(invalid("ledgers", &format!("at most {}", fence::MAX_LEDGERS)));
            }
            Ok(serving) => fence::many(&self.core, &serving, &r.ledgers).await,
            Err(code) => {
                let refuse = |&ledger: &u64| FenceResult { ledger, code: code.into(), lac: -1 };
                r.ledgers.iter().map(refuse).collect()
            }
        };
        Ok(Response::new(FenceResponse { results }))
    }

    async fn recovery_add(
        &self,
        request: Request<RecoveryAddRequest>,
    ) -> Result<Response<RecoveryAddResponse>, Status> {
        let _place = self.place()?;
        let r = request.into_inner();
        let codes = match self.core.gate(r.identity.as_ref()) {
            Ok(serving) => recovery_add::run(&self.core, &serving, r.entries).await,
            Err(code) => vec![code; r.entries.len()],
        };
        Ok(Response::new(RecoveryAddResponse { codes: codes.into_iter().map(Into::into).collect() }))
    }

    async fn read_lac(&self, request: Request<ReadLacRequest>) -> Result<Response<ReadLacResponse>, Status> {
        let place = self.place()?;
        let r = request.into_inner();
        let answer = match self.core.gate(r.identity.as_ref()) {
            Ok(serving) => lac::read(&self.core, &serving, &r, place).await,
            Err(code) => ReadLacResponse { code: code.into(), lac: -1 },
        };
        Ok(Response::new(answer))
    }

    async fn write_lac(
        &self,
        request: Request<WriteLacRequest>,
    ) -> Result<Response<WriteLacResponse>, Status> {
        let _place = self.place()?;
        let r = request.into_inner();
        let code = match self.core.gate(r.identity.as_ref()) {
            Ok(serving) => lac::write(&serving, &r).await,
            Err(code) => code,
        };
        Ok(Response::new(WriteLacResponse { code: code.into() }))
    }

    async fn list_ledgers(
        &self,
        request: Request<ListLedgersRequest>,
    ) -> Result<Response<ListLedgersResponse>, Status> {
        let _place = self.place()?;
        let r = request.into_inner();
        let answer = match self.core.gate(r.identity.as_ref()) {
            Ok(serving) => list::ledgers(&serving, &r).await,
            Err(code) => ListLedgersResponse { code: code.into(), ledgers: Vec::new() },
        };
        Ok(Response::new(answer))
    }

    async fn list_ranges(
        &self,
        request: Request<ListRangesRequest>,
    ) -> Result<Response<ListRangesResponse>, Status> {
        let _place = self.place()?;
        let r = request.into_inner();
        let answer = match self.core.gate(r.identity.as_ref()) {
            Ok(serving) => list::ranges(&serving, &r).await,
            Err(code) => ListRangesResponse { code: code.into(), ranges: Vec::new() },
        };
        Ok(Response::new(answer))
    }

    async fn get_info(&self, _request: Request<GetInfoRequest>) -> Result<Response<GetInfoResponse>, Status> {
        Ok(Response::new(info::get(&self.core)))
    }

    async fn set_read_only(
        &self,
        request: Request<SetReadOnlyRequest>,
    ) -> Result<Response<SetReadOnlyResponse>, Status> {
        let _place = self.place()?;
        let r = request.into_inner();
        let code = match self.core.gate(r.identity.as_ref()) {
            Ok(serving) => {
                tracing::warn!(read_only = r.read_only, "read-only was set by hand");
                serving.engine.set_read_only(r.read_only);
                Code::Ok
            }
            Err(code) => code,
        };
        Ok(Response::new(SetReadOnlyResponse { code: code.into() }))
    }

    async fn ping(&self, request: Request<PingRequest>) -> Result<Response<PingResponse>, Status> {
        let code = self.core.gate(request.into_inner().identity.as_ref()).err().unwrap_or(Code::Ok);
        Ok(Response::new(PingResponse { code: code.into() }))
    }
}

fn invalid(field: &str, allowed: &str) -> Status {
    convert::status(
        ErrorCode::InvalidArgument,
        &format!("{field}: {allowed}"),
        Details { field: Some((field.to_owned(), allowed.to_owned())), ..Details::default() },
    )
}
