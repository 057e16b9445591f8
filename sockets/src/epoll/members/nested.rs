//! What comes to the members of a set, for one who watches the set.

use super::super::member::What;
use super::Members;
use crate::epoll::Set;
use crate::ready::IN;

impl Members {
    /// One after the other of the sets in this one.
    pub(in crate::epoll) fn set_at(&self, at: usize) -> Option<&'static Set> {
        let index = self.sets.get(at)?;
        match self.list.get(*index as usize)?.what {
            What::Set(set) => Some(set),
            _ => None,
        }
    }

    /// How often something came, as far as it was asked; and whether there is something that only the kernel knows of. `heard` says that the kernel has
    /// reported the set: for one of the members that are not hot, perhaps.
    pub(in crate::epoll) fn what_came(&mut self, heard: bool) -> (u64, bool) {
        if heard {
            self.ask_kernel();
        }
        let mut carried = false;
        for hot in &self.hot {
            if let Some(member) = self.list.get_mut(hot.index as usize) {
                let come = member.come(heard);
                self.came += u64::from(come.any);
                carried |= come.carried;
            }
        }
        if heard && self.has_others() {
            carried |= self
                .list
                .iter_mut()
                .filter(|member| matches!(member.what, What::Other))
                .any(|member| member.come(true).carried);
            carried = carried || (self.strays && sys::epoll::shows(self.instance, IN as u16) != 0);
        }
        (self.came, carried)
    }
}
