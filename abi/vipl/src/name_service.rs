//! Host names: `VipNS…`.

use std::ffi::{CString, OsString, c_ulong};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::sync::{MutexGuard, PoisonError};

use via::name_service::NameService;
use via::{Discriminator, Error, NetAddress};

use crate::abi_types::VipReturn;
use crate::address::{AddressIn, AddressOut, Capacity};
use crate::caller::{Bytes, Out, Text};
use crate::guard::guard;
use crate::handles::Handle;
use crate::objects::Nic;

#[unsafe(no_mangle)]
extern "C" fn VipNSInit(nic: Handle<Nic>, init_info: Text) -> VipReturn {
    guard(nic, || {
        let nic = nic.get()?;
        let path = if init_info.is_null() {
            std::env::var_os(HOSTS)
        } else {
            Some(OsString::from_vec(init_info.read()?.into_bytes()))
        };
        let own_address = nic.ops.attributes().local_address;
        let mut service = NameService::new(&sys::host::hostname(), own_address);
        if let Some(path) = path {
            read(&mut service, Path::new(&path))?;
        }
        *names(&nic) = Some(service);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn VipNSGetHostByName(
    nic: Handle<Nic>,
    name: Text,
    address: AddressOut,
    index: c_ulong,
) -> VipReturn {
    guard(nic, || {
        let nic = nic.get()?;
        let name = name.read()?;
        let address = address.check()?;
        // What is not UTF-8 no table has.
        let name = name.to_str().map_err(|_| Error::NameService)?;
        let names = names(&nic);
        let service = names.as_ref().ok_or(Error::NameService)?;
        let host = service.address(name, index as usize)?;
        let found = NetAddress {
            host,
            discriminator: Discriminator::default(),
        };
        address.write(&found, Capacity::NONE);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn VipNSGetHostByAddr(
    nic: Handle<Nic>,
    address: AddressIn,
    name: Bytes,
    name_len: Out<c_ulong>,
) -> VipReturn {
    guard(nic, || {
        let nic = nic.get()?;
        let address = address.check()?;
        let name = name.check()?;
        let name_len = name_len.place()?;
        let host = address.read()?.host;
        let names = names(&nic);
        let service = names.as_ref().ok_or(Error::NameService)?;
        let found = CString::new(service.name(host)?).map_err(|_| Error::NameService)?;
        let found = found.as_bytes_with_nul();
        let room = name_len.read();
        name_len.write(found.len() as c_ulong);
        if room < found.len() as c_ulong {
            return Err(Error::Resource);
        }
        // SAFETY: the caller says that there is room for `room` bytes, which are enough.
        unsafe { name.write(found) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn VipNSShutdown(nic: Handle<Nic>) -> VipReturn {
    guard(nic, || {
        *names(&*nic.get()?) = None;
        Ok(())
    })
}

fn names(nic: &Nic) -> MutexGuard<'_, Option<NameService>> {
    nic.names.lock().unwrap_or_else(PoisonError::into_inner)
}

fn read(service: &mut NameService, path: &Path) -> Result<(), Error> {
    let text = std::fs::read_to_string(path).map_err(|_| Error::NameService)?;
    service.read(&text)
}

/// Names a file that is read for a program which names none.
const HOSTS: &str = "SOVIA_VIPL_HOSTS";
