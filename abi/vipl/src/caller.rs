//! What a C caller hands in: its pointers are followed here and nowhere else.
//!
//! The types of this module are parameter types of the entry points. Only a call from C makes one, and `vipl.h` is the
//! contract of such a call: a pointer is NULL, or points to what its type says, which stays there, and is touched by nobody else, until
//! the call returns; a function is NULL or may be called as long as it is registered. "The caller's contract", below, is this.
//! C need not align what it passes, so everything is copied byte by byte.

use std::ffi::{CStr, CString, c_char};
use std::ptr;

use via::{CqEntry, Error, Queue};

use crate::abi_types::{
    VipAutodiscoveryList, VipBoolean, VipErrorDescriptor, VipMemAttributes, VipNetAddressHead,
    VipNicAttributes, VipViAttributes,
};
use crate::address::AddressOut;
use crate::handles::Handle;
use crate::objects::{Nic, Vi};

/// Types of which every pattern of bits is a value, so that C can pass no bad one.
///
/// # Safety
/// It must be so.
pub(crate) unsafe trait Plain: Copy {}

// SAFETY: numbers, raw pointers, and structures of nothing else.
unsafe impl Plain for u32 {}
// SAFETY: as above.
unsafe impl Plain for u64 {}
// SAFETY: as above.
unsafe impl Plain for usize {}
// SAFETY: as above.
unsafe impl Plain for VipBoolean {}
// SAFETY: as above.
unsafe impl Plain for VipMemAttributes {}
// SAFETY: as above.
unsafe impl Plain for VipNetAddressHead {}
// SAFETY: as above.
unsafe impl Plain for VipNicAttributes {}
// SAFETY: as above.
unsafe impl Plain for VipViAttributes {}
// SAFETY: as above; a handle is a number until it is looked up.
unsafe impl<T> Plain for Handle<T> {}
// SAFETY: as above.
unsafe impl Plain for crate::abi_types::PtagHandle {}
// SAFETY: as above.
unsafe impl Plain for AddressOut {}
// SAFETY: as above.
unsafe impl Plain for VipAutodiscoveryList {}

/// Points to a `T` that is read.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct In<T>(*const T);

impl<T: Plain> In<T> {
    pub(crate) fn is_null(self) -> bool {
        self.0.is_null()
    }

    pub(crate) fn read(self) -> Result<T, Error> {
        if self.is_null() {
            return Err(Error::InvalidParameter);
        }
        // SAFETY: by the caller's contract there is a `T`, if not aligned; any bits are one.
        Ok(unsafe { self.0.read_unaligned() })
    }

    /// The element `index` of an array.
    ///
    /// # Safety
    /// By the caller's contract it has more elements.
    pub(crate) unsafe fn nth(self, index: usize) -> Result<T, Error> {
        if self.is_null() {
            return Err(Error::InvalidParameter);
        }
        // SAFETY: the element is there, says the caller.
        let element = unsafe { self.0.add(index) };
        Self(element).read()
    }
}

/// Points to room for a `T`, which may hold one before.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Out<T>(*mut T);

impl<T: Plain> Out<T> {
    /// The room, if there is any.
    pub(crate) fn place(self) -> Result<Place<T>, Error> {
        if self.0.is_null() {
            return Err(Error::InvalidParameter);
        }
        Ok(Place(self.0))
    }

    #[cfg(test)]
    pub(crate) fn to(value: &mut T) -> Self {
        Self(value)
    }
}

/// An [`Out`] that is not NULL.
#[derive(Clone, Copy)]
pub(crate) struct Place<T>(*mut T);

impl<T: Plain> Place<T> {
    #[inline]
    pub(crate) fn write(self, value: T) {
        // SAFETY: by the caller's contract there is room for a `T`, if not aligned.
        unsafe { self.0.write_unaligned(value) };
    }

    pub(crate) fn read(self) -> T {
        // SAFETY: only for parameters that are IN OUT: by the caller's contract there is a `T`; any bits are one.
        unsafe { self.0.read_unaligned() }
    }
}

/// Points to a text that ends with NUL.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Text(*const c_char);

impl Text {
    pub(crate) fn is_null(self) -> bool {
        self.0.is_null()
    }

    pub(crate) fn read(self) -> Result<CString, Error> {
        if self.is_null() {
            return Err(Error::InvalidParameter);
        }
        // SAFETY: by the caller's contract there is a text that ends with NUL.
        Ok(unsafe { CStr::from_ptr(self.0) }.to_owned())
    }

    #[cfg(test)]
    pub(crate) fn of(text: &CStr) -> Self {
        Self(text.as_ptr())
    }
}

/// Points to bytes; how many there are is said elsewhere.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Bytes(*mut u8);

impl Bytes {
    pub(crate) fn check(self) -> Result<Self, Error> {
        if self.0.is_null() {
            return Err(Error::InvalidParameter);
        }
        Ok(self)
    }

    /// Copies the bytes at `offset` out.
    ///
    /// # Safety
    /// By the caller's contract there are as many.
    pub(crate) unsafe fn read(self, offset: usize, into: &mut [u8]) {
        // SAFETY: the bytes are there, says the caller; `into` is none of them, being ours.
        unsafe { ptr::copy_nonoverlapping(self.0.add(offset), into.as_mut_ptr(), into.len()) };
    }

    /// Copies `from` in, from the start on.
    ///
    /// # Safety
    /// By the caller's contract there is room for as many.
    pub(crate) unsafe fn write(self, from: &[u8]) {
        // SAFETY: as in `read`.
        unsafe { ptr::copy_nonoverlapping(from.as_ptr(), self.0, from.len()) };
    }

    #[cfg(test)]
    pub(crate) fn of(bytes: &mut [u8]) -> Self {
        Self(bytes.as_mut_ptr())
    }
}

/// The argument that a function of the caller gets back; the caller sees to it that any thread may use what it points to.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Context(usize);

#[cfg(test)]
impl Context {
    pub(crate) const NULL: Self = Self(0);
}

/// `VIP_VI_CALLBACK`.
pub(crate) type ViCallback =
    Option<unsafe extern "C" fn(Context, Handle<Nic>, Handle<Vi>, DescriptorAddress)>;
/// `VIP_CQ_CALLBACK`.
pub(crate) type CqCallback =
    Option<unsafe extern "C" fn(Context, Handle<Nic>, Handle<Vi>, VipBoolean)>;
/// `VIP_ERROR_HANDLER`.
pub(crate) type ErrorCallback = Option<unsafe extern "C" fn(Context, *const VipErrorDescriptor)>;

/// A function of the caller with its argument.
#[derive(Clone, Copy)]
pub(crate) struct Callback<F> {
    function: F,
    context: Context,
}

impl<F> Callback<F> {
    /// `None` for NULL.
    pub(crate) fn new(function: Option<F>, context: Context) -> Option<Self> {
        function.map(|function| Self { function, context })
    }
}

impl Callback<unsafe extern "C" fn(Context, Handle<Nic>, Handle<Vi>, DescriptorAddress)> {
    pub(crate) fn call(&self, nic: Handle<Nic>, vi: Handle<Vi>, descriptor: DescriptorAddress) {
        // SAFETY: by the caller's contract the registered function may be called with these arguments.
        unsafe { (self.function)(self.context, nic, vi, descriptor) };
    }
}

impl Callback<unsafe extern "C" fn(Context, Handle<Nic>, Handle<Vi>, VipBoolean)> {
    pub(crate) fn call(&self, nic: Handle<Nic>, vi: Handle<Vi>, entry: CqEntry) {
        let recv_queue = VipBoolean::from(entry.queue == Queue::Recv);
        // SAFETY: by the caller's contract the registered function may be called with these arguments.
        unsafe { (self.function)(self.context, nic, vi, recv_queue) };
    }
}

impl Callback<unsafe extern "C" fn(Context, *const VipErrorDescriptor)> {
    pub(crate) fn call(&self, descriptor: &VipErrorDescriptor) {
        // SAFETY: by the caller's contract the registered function may be called with these arguments.
        unsafe { (self.function)(self.context, descriptor) };
    }
}

/// The address of a `VIP_DESCRIPTOR`. It is not followed here: the NIC finds the bytes in registered memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct DescriptorAddress(usize);

impl DescriptorAddress {
    pub(crate) const NULL: Self = Self(0);

    pub(crate) fn get(self) -> Result<u64, Error> {
        if self == Self::NULL {
            return Err(Error::InvalidParameter);
        }
        Ok(self.0 as u64)
    }
}

impl From<u64> for DescriptorAddress {
    fn from(address: u64) -> Self {
        Self(address as usize)
    }
}

// SAFETY: as for the other `Plain` types.
unsafe impl Plain for DescriptorAddress {}
