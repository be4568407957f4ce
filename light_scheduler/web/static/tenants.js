/**
 * The choice of a tenant: those of the token, or any if it is for all.
 * @module
 */

import { choice, field } from "./widgets.js";

/**
 * @param {import("./types.d.ts").Identity} identity
 * @param {string} tenant
 */
export function tenantField(identity, tenant) {
  if (identity.tenants === null) return field("Tenant", { name: "tenant", value: tenant, required: true });
  return choice("Tenant", Object.fromEntries(identity.tenants.map((name) => [name, name])), tenant, { name: "tenant" });
}
