/**
 * The selection of a tenant: one of the token's, or any if the token is for all tenants.
 * @module
 */

import { choice, field } from "./widgets.js";

/**
 * @param {import("./types.d.ts").Identity} identity
 * @param {string} tenant
 * @param {boolean} [mayBeAll] whether it may be left empty for all tenants
 */
export function tenantField(identity, tenant, mayBeAll = false) {
  if (identity.tenants === null) {
    const placeholder = mayBeAll ? "all" : null;
    return field("Tenant", { name: "tenant", value: tenant, required: !mayBeAll, placeholder });
  }
  return choice("Tenant", Object.fromEntries(identity.tenants.map((name) => [name, name])), tenant, { name: "tenant" });
}
