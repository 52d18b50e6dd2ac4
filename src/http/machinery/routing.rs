//! The router: finds the operation of a request by path and method.
//!
//! It replaces the router of poem (the web framework), which matches patterns of paths and allocates a boxed future in each of its layers.
//! Both cost measurable time in every request. A hash table is enough here, since no path in the OpenAPI documents has a parameter.

use std::{collections::HashMap, sync::Arc};

use poem::{
    Endpoint, EndpointExt, Request, Response,
    endpoint::{BoxEndpoint, DynEndpoint},
    error::MethodNotAllowedError,
    http::Method,
};
use poem_openapi::OpenApi;

/// The prefix of the paths of the public API.
pub const PREFIX: &str = "/v1";

/// The prefix of the paths of the settings API.
pub const SETTINGS_PREFIX: &str = "/settings/v1";

/// Returns whether a path begins with the prefix of the settings API. An operation need not exist at the path.
pub fn in_settings(path: &str) -> bool {
    path.strip_prefix(SETTINGS_PREFIX).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The routing table: all operations, by their complete path and then by their method.
#[derive(Default)]
pub struct Operations(HashMap<String, HashMap<Method, BoxEndpoint<'static>>>);

impl Operations {
    pub fn add(&mut self, api: impl OpenApi) {
        api.add_routes(&mut self.0);
    }

    /// Adds an endpoint at a path that no OpenAPI document lists. `methods` are the methods that the path accepts.
    pub fn at(&mut self, path: &str, methods: &[Method], endpoint: impl Endpoint<Output = Response> + 'static) {
        let endpoint = Arc::new(endpoint);
        let served = methods.iter().map(|method| (method.clone(), endpoint.clone().boxed()));
        self.0.entry(path.to_owned()).or_default().extend(served);
    }

    /// Returns the methods that a path accepts, in alphabetical order. The list is empty if nothing is served at the path.
    pub fn methods(&self, path: &str) -> Vec<&str> {
        let mut methods: Vec<&str> = self.0.get(path).into_iter().flat_map(|methods| methods.keys()).map(Method::as_str).collect();
        methods.sort_unstable();
        methods
    }

    /// Returns the operation of a request: `None` if nothing is served at the path of the request, and an error if the path does not accept
    /// the method of the request.
    pub fn find(&self, request: &Request) -> Option<Result<&dyn DynEndpoint<Output = Response>, MethodNotAllowedError>> {
        let methods = self.0.get(request.uri().path())?;
        Some(methods.get(request.method()).map(|endpoint| &**endpoint).ok_or(MethodNotAllowedError))
    }
}
