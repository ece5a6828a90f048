//! The parameters of a function, as the fields of its arguments.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Attribute, FnArg, Ident, Pat, Signature, Type};

/// The parameters of a function.
pub(crate) struct Parameters {
    /// The fields of the arguments, with their documentation.
    pub(crate) fields: Vec<TokenStream>,
    /// Their names, in order.
    pub(crate) names: Vec<Ident>,
    /// The parameter that a model does not send.
    pub(crate) state: Option<StateParameter>,
}

/// The parameter that is marked with `#[state]`.
pub(crate) struct StateParameter {
    pub(crate) name: Ident,
    pub(crate) ty: Type,
}

impl Parameters {
    /// Reads the parameters, and takes the attributes away that a parameter of a function cannot have.
    pub(crate) fn take(signature: &mut Signature) -> syn::Result<Self> {
        let mut parameters = Self { fields: Vec::new(), names: Vec::new(), state: None };
        for (position, input) in signature.inputs.iter_mut().enumerate() {
            let FnArg::Typed(typed) = input else {
                return Err(syn::Error::new_spanned(input, "a tool is a function, not a method"));
            };
            let Pat::Ident(pattern) = &*typed.pat else {
                let message = "a parameter of a tool is a name: it is the name that a model sends";
                return Err(syn::Error::new_spanned(&typed.pat, message));
            };
            let (name, ty) = (pattern.ident.clone(), (*typed.ty).clone());
            let attributes = std::mem::take(&mut typed.attrs);
            let (marks, kept): (Vec<Attribute>, Vec<Attribute>) =
                attributes.into_iter().partition(|attribute| attribute.path().is_ident("state"));
            if marks.is_empty() {
                parameters.fields.push(quote!(#(#kept)* #name: #ty));
                parameters.names.push(name);
            } else if position == 0 {
                parameters.state = Some(StateParameter { name, ty });
            } else {
                let message = "the state is the first parameter";
                return Err(syn::Error::new_spanned(&name, message));
            }
        }
        Ok(parameters)
    }
}
